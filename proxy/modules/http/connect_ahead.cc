// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/connect_ahead.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "proxy/modules/http/head.h"
#include "proxy/modules/http/prefetch/asked.h"

namespace longhaul::http {
namespace {

constexpr std::array<std::string_view, 2> kMethods{"GET ", "HEAD "};

std::string_view said_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool may_be_repeated_alone(Bytes head) {
  const auto request = read_request(head);
  const auto framing = request ? framing_of(*request) : std::nullopt;
  return framing && framing->kind == Framing::Kind::none &&
         (request->method == "GET" || request->method == "HEAD") && !request->fields.has("upgrade") &&
         !request->fields.has("expect") && !authenticates_connection(request->fields);
}

}  // namespace

bool may_be_repeated(Bytes said) {
  while (const std::size_t size = head_size(said)) {
    if (!may_be_repeated_alone(said.first(size))) return false;
    said = said.subspan(size);
  }
  const std::string_view rest = said_text(said);
  return std::ranges::any_of(kMethods, [&](std::string_view method) {
    return rest.starts_with(method) || method.starts_with(rest);
  });
}

bool is_response(Bytes first) {
  static constexpr std::string_view kVersion = "HTTP/1.";
  static constexpr std::size_t kDigits = 1, kStatusAt = kVersion.size() + kDigits + 1;
  const std::string_view text = said_text(first);
  return text.size() >= kStatusAt + 3 && text.starts_with(kVersion) && text.substr(kStatusAt, 3) != "408";
}

}  // namespace longhaul::http
