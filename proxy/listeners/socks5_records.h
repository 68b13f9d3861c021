// SPDX-License-Identifier: Apache-2.0
// Parses and writes the records of SOCKS5 (RFC 1928): pure. socks5.h decides when to read and what to reply.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "codecs/bytes.h"
#include "codecs/result.h"
#include "proxy/flows/accepted.h"

namespace longhaul::listeners::socks5 {

enum class Error {
  not_socks5 = 1,  // the first byte is not 5
  bad_request,     // a field that RFC 1928 does not allow
  bad_address_type,
};
boost::system::error_code make_error_code(Error error);

// An error means that the input can never be valid, nullopt that more bytes are needed. Otherwise the record
// has `consumed` bytes.
template <class T>
struct Parsed {
  T value;
  std::size_t consumed = 0;
};
template <class T>
using Parsing = Result<std::optional<Parsed<T>>>;

// Section 3: version, methods.
struct Greeting {
  bool offers_no_authentication = false;
};
Parsing<Greeting> parse_greeting(Bytes in);

// Section 4: version, command, reserved, address type, address, port.
enum class Command : std::uint8_t { connect = 1, bind = 2, udp_associate = 3 };
struct Request {
  std::uint8_t command = 0;  // a Command, or an unknown one
  flows::Destination destination;
};
Parsing<Request> parse_request(Bytes in);

// The minimum length of the record that follows from `in`; the exact length once `in` has that many bytes. A
// reader that reads only these never reads past the record.
std::size_t greeting_bytes(Bytes in);
std::size_t request_bytes(Bytes in);

enum class Reply : std::uint8_t {  // section 6
  succeeded = 0,
  general_failure = 1,
  not_allowed = 2,
  network_unreachable = 3,
  host_unreachable = 4,
  refused = 5,
  ttl_expired = 6,
  command_not_supported = 7,
  address_type_not_supported = 8,
};
Reply reply_for(flows::ConnectOutcome outcome);
// The bound address in the reply is 0.0.0.0:0: the far proxy's socket does not concern the client.
std::string reply_text(Reply reply);
inline constexpr std::string_view kNoAuthentication{"\x05\x00", 2};
inline constexpr std::string_view kNoAcceptableMethod{"\x05\xff", 2};

}  // namespace longhaul::listeners::socks5

template <>
struct boost::system::is_error_code_enum<longhaul::listeners::socks5::Error> : std::true_type {};
