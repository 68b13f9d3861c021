// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/records_session.h"

#include <string_view>

#include "proxy/modules/smb/smb2/body_reader.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t align8(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

// 2.2.3.1: contexts begin at multiples of eight, counted from the list's start; the last is not padded.
std::optional<NegotiateContexts> parse_contexts(Bytes element, std::size_t offset, std::size_t count) {
  NegotiateContexts contexts;
  if (count == 0) return contexts;
  if (offset < kHeaderBytes || offset > element.size()) return std::nullopt;
  Bytes rest = element.subspan(offset);
  for (; count > 0; --count) {
    LittleEndianReader in(rest);
    NegotiateContext context;
    context.type = in.u16();
    const std::uint16_t data_bytes = in.u16();
    in.skip(4);
    context.data = in.bytes(data_bytes);
    if (!in.ok()) return std::nullopt;
    contexts.push_back(context);
    rest = rest.subspan(std::min(rest.size(), align8(8u + data_bytes)));
  }
  return contexts;
}

}  // namespace

// 2.2.3
Result<NegotiateRequest> parse_negotiate_request(Bytes element) {
  BodyReader in(element, 36);
  NegotiateRequest request;
  const std::uint16_t dialects = in.u16();
  request.security_mode = in.u16();
  in.skip(2);
  request.capabilities = in.u32();
  request.client_guid = in.id16();
  const std::uint32_t contexts_offset = in.u32();
  const std::uint16_t contexts = in.u16();
  in.skip(2);
  bool has_contexts = false;
  for (std::uint16_t i = 0; i < dialects && in.ok(); ++i) {
    request.dialects.push_back(static_cast<Dialect>(in.u16()));
    has_contexts |= request.dialects.back() == Dialect::smb_3_1_1;
  }
  if (!in.ok()) return Error::malformed_record;
  if (has_contexts) {  // in older dialects these eight bytes are ClientStartTime
    auto parsed = parse_contexts(element, contexts_offset, contexts);
    if (!parsed) return Error::malformed_record;
    request.contexts = std::move(*parsed);
  }
  return request;
}

// 2.2.4
Result<NegotiateResponse> parse_negotiate_response(Bytes element) {
  BodyReader in(element, 65);
  NegotiateResponse response;
  response.security_mode = in.u16();
  response.dialect = static_cast<Dialect>(in.u16());
  const std::uint16_t contexts = in.u16();
  response.server_guid = in.id16();
  response.capabilities = in.u32();
  response.max_transact_bytes = in.u32();
  response.max_read_bytes = in.u32();
  response.max_write_bytes = in.u32();
  in.skip(16);  // SystemTime, ServerStartTime
  const std::uint16_t security_offset = in.u16(), security_bytes = in.u16();
  const std::uint32_t contexts_offset = in.u32();
  response.security = in.buffer(security_offset, security_bytes);
  if (!in.ok()) return Error::malformed_record;
  if (response.dialect == Dialect::smb_3_1_1) {
    auto parsed = parse_contexts(element, contexts_offset, contexts);
    if (!parsed) return Error::malformed_record;
    response.contexts = std::move(*parsed);
  }
  return response;
}

// [MS-CIFS] 2.2.4.52.1: no words, then dialects, each 0x02 and a string that ends with a zero.
Result<MultiProtocolNegotiate> parse_multi_protocol_negotiate(Bytes message) {
  constexpr std::size_t kSmb1HeaderBytes = 32;
  constexpr std::uint8_t kNegotiate = 0x72;
  constexpr std::uint8_t kDialectFormat = 2;
  LittleEndianReader in(message);
  if (in.u32() != 0x424D53FFu || in.u8() != kNegotiate) return Error::malformed_header;
  in.skip(kSmb1HeaderBytes - 5);
  in.skip(2u * in.u8());
  std::string_view rest = as_text(in.bytes(in.u16()));
  if (!in.ok()) return Error::malformed_record;
  MultiProtocolNegotiate offered;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    if (rest[0] != kDialectFormat || end == rest.npos) return Error::malformed_record;
    const std::string_view dialect = rest.substr(1, end - 1);
    if (dialect == "SMB 2.002") {
      offered.smb2_002 = true;
    } else if (dialect == "SMB 2.???") {
      offered.smb2_any = true;
    } else {
      offered.smb1 = true;
    }
    rest.remove_prefix(end + 1);
  }
  return offered;
}

// 2.2.5
Result<SessionSetupRequest> parse_session_setup_request(Bytes element) {
  BodyReader in(element, 25);
  SessionSetupRequest request;
  request.binding = in.u8() & 1;
  request.security_mode = in.u8();
  request.capabilities = in.u32();
  in.skip(4);  // Channel
  const std::uint16_t offset = in.u16(), length = in.u16();
  request.previous_session = in.u64();
  request.security = in.buffer(offset, length);
  return in.finish(std::move(request));
}

// 2.2.6
Result<SessionSetupResponse> parse_session_setup_response(Bytes element) {
  BodyReader in(element, 9);
  SessionSetupResponse response;
  response.flags = in.u16();
  const std::uint16_t offset = in.u16(), length = in.u16();
  response.security = in.buffer(offset, length);
  return in.finish(std::move(response));
}

// Four bytes in all of them except the SET_INFO response (2.2.40), which has two.
Result<void> parse_empty(Bytes element) {
  if (BodyReader(element, 4).ok() || BodyReader(element, 2).ok()) return {};
  return Error::malformed_record;
}

// 2.2.9
Result<TreeConnectRequest> parse_tree_connect_request(Bytes element) {
  BodyReader in(element, 9);
  TreeConnectRequest request;
  request.flags = in.u16();
  const std::uint16_t offset = in.u16(), length = in.u16();
  request.path = in.buffer(offset, length);
  return in.finish(std::move(request));
}

// 2.2.10
Result<TreeConnectResponse> parse_tree_connect_response(Bytes element) {
  BodyReader in(element, 16);
  TreeConnectResponse response;
  const std::uint8_t type = in.u8();
  if (type < static_cast<std::uint8_t>(ShareType::disk) || type > static_cast<std::uint8_t>(ShareType::print))
    in.fail();
  response.type = static_cast<ShareType>(type);
  in.skip(1);
  response.flags = in.u32();
  response.capabilities = in.u32();
  response.maximal_access = in.u32();
  return in.finish(std::move(response));
}

// 2.2.2
Result<ErrorResponse> parse_error_response(Bytes element) {
  BodyReader in(element, 9);
  ErrorResponse response;
  std::uint8_t contexts = in.u8();
  in.skip(1);
  const std::uint32_t data_bytes = in.u32();
  response.data = in.bytes(data_bytes);
  if (!in.ok()) return Error::malformed_record;
  // 2.2.2.1: each begins at a multiple of eight.
  for (Bytes rest = response.data; contexts > 0; --contexts) {
    LittleEndianReader entry(rest);
    const std::uint32_t context_bytes = entry.u32();
    ErrorContext context;
    context.id = entry.u32();
    context.data = entry.bytes(context_bytes);
    if (!entry.ok()) return Error::malformed_record;
    response.contexts.push_back(context);
    rest = rest.subspan(std::min(rest.size(), align8(std::size_t{8} + context_bytes)));
  }
  return response;
}

}  // namespace longhaul::smb::smb2
