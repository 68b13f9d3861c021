// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/to_server.h"

#include <catch2/catch.hpp>
#include <string>

using namespace longhaul;
using namespace longhaul::http;

namespace {

Bytes bytes_for_server(std::string_view text) { return std::as_bytes(std::span(text)); }

// Bytes as they are; ">" is where requests begin to pass without the module, "|" is the end.
std::string sent_to_server(const std::deque<modules::Output>& out) {
  std::string text;
  for (const modules::Output& each : out) {
    if (const auto* bytes = std::get_if<modules::ToStream>(&each))
      text.append(reinterpret_cast<const char*>(bytes->bytes.bytes().data()), bytes->bytes.size());
    if (std::holds_alternative<modules::StepAside>(each)) text += '>';
    if (std::holds_alternative<modules::EndStream>(each)) text += '|';
  }
  return text;
}

}  // namespace

TEST_CASE("http cache: the server does not get bytes that it has, however they are split") {
  std::deque<modules::Output> out;
  ToServer server(out);
  server.pass(bytes_for_server("ab"));
  CHECK_FALSE(server.is_skipping());
  server.skip(3);
  server.skip(1);
  CHECK(server.is_skipping());
  server.pass(bytes_for_server("cde"));
  CHECK(out.size() == 1);
  CHECK(server.is_skipping());
  server.pass(bytes_for_server("fgh"));
  CHECK_FALSE(server.is_skipping());
  server.pass(bytes_for_server("i"));
  CHECK(sent_to_server(out) == "abghi");
}

TEST_CASE("http cache: bytes that this half sends itself are not skipped") {
  std::deque<modules::Output> out;
  ToServer server(out);
  server.skip(2);
  server.say(Slice::copy_of(bytes_for_server("?")));
  server.pass(bytes_for_server("abc"));
  CHECK(sent_to_server(out) == "?c");
}

TEST_CASE("http cache: a server hears one end") {
  std::deque<modules::Output> out;
  ToServer server(out);
  CHECK_FALSE(server.has_ended());
  server.end();
  server.end();
  CHECK(server.has_ended());
  CHECK(sent_to_server(out) == "|");
}

TEST_CASE(
    "http cache: what is held follows the point from which requests pass, without what the server has") {
  std::deque<modules::Output> out;
  ToServer server(out);
  server.skip(2);
  CHECK_FALSE(server.has_stepped_aside());
  server.step_aside({}, bytes_for_server("abc"));
  CHECK(server.has_stepped_aside());
  CHECK(sent_to_server(out) == ">c");
}

TEST_CASE("http cache: content is told from everything else to the server") {
  std::deque<modules::Output> out;
  ToServer server(out);
  server.pass(bytes_for_server("head"));
  server.pass_content(bytes_for_server("content"));
  server.skip(2);
  server.pass_content(bytes_for_server("more"));
  server.say(Slice::copy_of(bytes_for_server("question")));
  server.step_aside({}, bytes_for_server("rest"));
  std::vector<bool> is_content;
  for (const modules::Output& each : out)
    if (const auto* bytes = std::get_if<modules::ToStream>(&each)) is_content.push_back(bytes->is_content);
  CHECK(is_content == std::vector{false, true, true, false, false});
  CHECK(sent_to_server(out) == "headcontentrequestion>rest");
}
