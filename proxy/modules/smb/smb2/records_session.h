// SPDX-License-Identifier: Apache-2.0
// Records of SMB2 that begin and end sessions and trees, and the ERROR response. Without state: each function
// parses one element's bytes (including the header) and borrows from them. These requests are never changed
// or built here.
#pragma once
#include <boost/container/small_vector.hpp>
#include <optional>

#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

// 2.2.3.1 and 2.2.4.1, ContextType
namespace negotiate_context {
inline constexpr std::uint16_t preauth_integrity = 1;
inline constexpr std::uint16_t encryption = 2;
inline constexpr std::uint16_t compression = 3;
inline constexpr std::uint16_t netname = 5;
inline constexpr std::uint16_t transport = 6;
inline constexpr std::uint16_t rdma_transform = 7;
inline constexpr std::uint16_t signing = 8;
inline constexpr std::uint16_t posix_extensions = 0x100;
}  // namespace negotiate_context
struct NegotiateContext {
  std::uint16_t type = 0;
  Bytes data;
};
using NegotiateContexts = boost::container::small_vector<NegotiateContext, 6>;

// 2.2.3
struct NegotiateRequest {
  std::uint16_t security_mode = 0;
  std::uint32_t capabilities = 0;
  Guid client_guid{};
  boost::container::small_vector<Dialect, 8> dialects;
  NegotiateContexts contexts;  // if the dialects include 3.1.1
};
Result<NegotiateRequest> parse_negotiate_request(Bytes element);

// 2.2.4
struct NegotiateResponse {
  std::uint16_t security_mode = 0;
  Dialect dialect = Dialect::none;
  Guid server_guid{};
  std::uint32_t capabilities = 0;
  std::uint32_t max_transact_bytes = 0;
  std::uint32_t max_read_bytes = 0;
  std::uint32_t max_write_bytes = 0;
  Bytes security;
  NegotiateContexts contexts;  // in 3.1.1

  bool multi_credit() const {
    return dialect >= Dialect::smb_2_1 && dialect != Dialect::wildcard &&
           (capabilities & capabilities::large_mtu);
  }
  bool signing_required() const { return security_mode & security_mode::signing_required; }
};
Result<NegotiateResponse> parse_negotiate_response(Bytes element);

// [MS-CIFS] 2.2.4.52.1, [MS-SMB2] 3.3.5.3: an SMB1 NEGOTIATE, as far as it decides which dialect follows.
struct MultiProtocolNegotiate {
  bool smb1 = false;      // any dialect of SMB1 is offered
  bool smb2_002 = false;  // "SMB 2.002": answered by an SMB2 NEGOTIATE response
  bool smb2_any = false;  // "SMB 2.???": answered by one with Dialect::wildcard
};
// `message` begins with FF 'SMB'.
Result<MultiProtocolNegotiate> parse_multi_protocol_negotiate(Bytes message);

// 2.2.5
struct SessionSetupRequest {
  bool binding = false;  // another channel of an existing session
  std::uint8_t security_mode = 0;
  std::uint32_t capabilities = 0;
  SessionId previous_session = 0;  // not 0: a reconnect
  Bytes security;
};
Result<SessionSetupRequest> parse_session_setup_request(Bytes element);

// 2.2.6
struct SessionSetupResponse {
  std::uint16_t flags = 0;  // session_flags
  Bytes security;
};
Result<SessionSetupResponse> parse_session_setup_response(Bytes element);

// 2.2.7, 2.2.8, 2.2.11, 2.2.12, 2.2.28, 2.2.29, 2.2.30, and the responses of FLUSH and LOCK: only their size.
Result<void> parse_empty(Bytes element);

// 2.2.9
struct TreeConnectRequest {
  std::uint16_t flags = 0;
  Bytes path;  // UTF-16LE: \\server\share
};
Result<TreeConnectRequest> parse_tree_connect_request(Bytes element);

// 2.2.10
struct TreeConnectResponse {
  ShareType type = ShareType::disk;
  std::uint32_t flags = 0;         // share_flags
  std::uint32_t capabilities = 0;  // share_capabilities
  std::uint32_t maximal_access = 0;
};
Result<TreeConnectResponse> parse_tree_connect_response(Bytes element);

// 2.2.2: the body of an error response.
struct ErrorContext {  // 2.2.2.1, of 3.1.1
  std::uint32_t id = 0;
  Bytes data;
};
struct ErrorResponse {
  boost::container::small_vector<ErrorContext, 2> contexts;
  Bytes data;  // all data, including the contexts
};
Result<ErrorResponse> parse_error_response(Bytes element);

}  // namespace longhaul::smb::smb2
