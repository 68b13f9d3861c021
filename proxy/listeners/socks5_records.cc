// SPDX-License-Identifier: Apache-2.0
#include "proxy/listeners/socks5_records.h"

#include <algorithm>

#include "proxy/flows/allow.h"

namespace longhaul::listeners::socks5 {

namespace asio = boost::asio;

namespace {

constexpr std::uint8_t kVersion = 5;
constexpr std::uint8_t kV4 = 1, kName = 3, kV6 = 4;  // address types, RFC 1928 section 5

std::uint8_t at(Bytes in, std::size_t index) { return std::to_integer<std::uint8_t>(in[index]); }

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "socks5"; }
  std::string message(int value) const override {
    switch (static_cast<Error>(value)) {
      case Error::not_socks5:
        return "the client does not speak SOCKS5";
      case Error::bad_request:
        return "the request violates RFC 1928";
      case Error::bad_address_type:
        return "unknown address type";
    }
    return "unknown";
  }
};

// Characters allowed in a DNS query; names with other bytes would reach logs and other parsers.
bool is_name(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c != 127; });
}

}  // namespace

boost::system::error_code make_error_code(Error error) {
  static const Category category;
  return {static_cast<int>(error), category};
}

std::size_t greeting_bytes(Bytes in) { return in.size() < 2 ? 2 : 2u + at(in, 1); }

Parsing<Greeting> parse_greeting(Bytes in) {
  if (!in.empty() && at(in, 0) != kVersion) return make_error_code(Error::not_socks5);
  const std::size_t size = greeting_bytes(in);
  if (in.size() < size) return std::nullopt;
  const Bytes methods = in.subspan(2, size - 2);
  return Parsed<Greeting>{{std::find(methods.begin(), methods.end(), std::byte{0}) != methods.end()}, size};
}

std::size_t request_bytes(Bytes in) {
  constexpr std::size_t kHead = 4, kPort = 2;
  if (in.size() < kHead + 1) return kHead + 1;
  switch (at(in, 3)) {
    case kV4:
      return kHead + 4 + kPort;
    case kV6:
      return kHead + 16 + kPort;
    case kName:
      return kHead + 1 + at(in, 4) + kPort;
    default:
      return kHead + 1;  // of unknown length; parsing reports it
  }
}

Parsing<Request> parse_request(Bytes in) {
  if (!in.empty() && at(in, 0) != kVersion) return make_error_code(Error::not_socks5);
  if (in.size() >= 3 && at(in, 2) != 0) return make_error_code(Error::bad_request);
  if (in.size() >= 4 && at(in, 3) != kV4 && at(in, 3) != kName && at(in, 3) != kV6)
    return make_error_code(Error::bad_address_type);
  const std::size_t size = request_bytes(in);
  if (in.size() < size) return std::nullopt;
  Request request{.command = at(in, 1), .destination = {}};
  flows::Destination& to = request.destination;
  to.port = static_cast<std::uint16_t>(at(in, size - 2) << 8 | at(in, size - 1));
  if (at(in, 3) == kV4) {
    asio::ip::address_v4::bytes_type bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = at(in, 4 + i);
    to.address = asio::ip::address_v4(bytes);
  } else if (at(in, 3) == kV6) {
    asio::ip::address_v6::bytes_type bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = at(in, 4 + i);
    to.address = config::unmapped(asio::ip::address_v6(bytes));
  } else {
    const std::string name(as_text(in.subspan(5, at(in, 4))));
    if (!is_name(name)) return make_error_code(Error::bad_request);
    boost::system::error_code not_a_literal;
    const auto literal = asio::ip::make_address(name, not_a_literal);  // many clients send addresses as names
    if (not_a_literal) {
      to.host = name;
    } else {
      to.address = config::unmapped(literal);
    }
  }
  return Parsed<Request>{std::move(request), size};
}

Reply reply_for(flows::ConnectOutcome outcome) {
  using flows::ConnectOutcome;
  switch (outcome) {
    case ConnectOutcome::connected:
      return Reply::succeeded;
    case ConnectOutcome::refused:
      return Reply::refused;
    case ConnectOutcome::host_unreachable:
      return Reply::host_unreachable;
    case ConnectOutcome::network_unreachable:
      return Reply::network_unreachable;
    case ConnectOutcome::not_allowed:
    case ConnectOutcome::client_not_allowed:
      return Reply::not_allowed;
    case ConnectOutcome::timed_out:
      return Reply::ttl_expired;
    case ConnectOutcome::name_not_found:
      return Reply::host_unreachable;
    case ConnectOutcome::failed:
      return Reply::general_failure;
  }
  return Reply::general_failure;
}

std::string reply_text(Reply reply) {
  std::string text(10, '\0');
  text[0] = static_cast<char>(kVersion);
  text[1] = static_cast<char>(reply);
  text[3] = static_cast<char>(kV4);
  return text;
}

}  // namespace longhaul::listeners::socks5
