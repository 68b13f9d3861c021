// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/to_client.h"

#include <catch2/catch.hpp>
#include <string>

using namespace longhaul;
using namespace longhaul::http;

namespace {

Slice slice_for_client(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

// Bytes as they are; ">" is where responses begin to pass without the module, "|" is the end.
std::string sent_to_client(const std::deque<modules::Output>& out) {
  std::string text;
  for (const modules::Output& each : out) {
    if (const auto* bytes = std::get_if<modules::ToLan>(&each))
      text.append(reinterpret_cast<const char*>(bytes->bytes.bytes().data()), bytes->bytes.size());
    if (std::holds_alternative<modules::StepAside>(each)) text += '>';
    if (std::holds_alternative<modules::EndLan>(each)) text += '|';
  }
  return text;
}

}  // namespace

TEST_CASE("http cache: an answer is a head and one part of the stored pieces") {
  Stored object;
  object.content = {slice_for_client("abc"), slice_for_client("def"), slice_for_client("ghi")};
  object.content_bytes = 9;
  const auto answer = [&](Part part) {
    std::deque<modules::Output> out;
    ToClient(out).answer(slice_for_client("H:"), object, part);
    return sent_to_client(out);
  };
  CHECK(answer({0, 9}) == "H:abcdefghi");
  CHECK(answer({0, 3}) == "H:abc");
  CHECK(answer({2, 5}) == "H:cdefg");
  CHECK(answer({3, 3}) == "H:def");
  CHECK(answer({8, 1}) == "H:i");
  CHECK(answer({4, 0}) == "H:");
}

TEST_CASE("http cache: nothing is output to a client after its end") {
  std::deque<modules::Output> out;
  ToClient client(out);
  client.pass(slice_for_client("a"));
  client.pass({});
  CHECK(out.size() == 1);
  client.end();
  client.end();
  client.pass(slice_for_client("b"));
  client.answer(slice_for_client("c"));
  CHECK(sent_to_client(out) == "a|");
  CHECK(client.has_ended());
}

TEST_CASE("http cache: one call answers a limited amount, heads included") {
  std::deque<modules::Output> out;
  ToClient client(out);
  Stored object;
  object.content = {Slice::copy_of(Buffer(ToClient::kMostAnsweredBytes - 1025))};
  object.content_bytes = ToClient::kMostAnsweredBytes - 1025;
  client.answer({}, object, {0, object.content_bytes});
  CHECK_FALSE(client.has_answered_enough());
  client.answer({});  // a head is never free
  CHECK(client.has_answered_enough());
  client.begin_call();
  CHECK_FALSE(client.has_answered_enough());
  client.pass(Slice::copy_of(Buffer(ToClient::kMostAnsweredBytes)));  // the server's, not an answer
  CHECK_FALSE(client.has_answered_enough());
}

TEST_CASE("http cache: responses begin once to pass without the module, and not after the end") {
  std::deque<modules::Output> out;
  ToClient client(out);
  client.pass(slice_for_client("a"));
  client.step_aside();
  client.step_aside();
  CHECK(sent_to_client(out) == "a>");

  std::deque<modules::Output> ended;
  ToClient gone(ended);
  gone.end();
  gone.step_aside();
  CHECK(sent_to_client(ended) == "|");
}
