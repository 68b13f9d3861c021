// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/negotiation.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/records_session.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::seal;
using namespace longhaul::smb::smb2::test;
using smb2::Command;
using smb2::Dialect;

namespace {

struct Context {
  std::uint16_t type;
  Buffer data;
};

Buffer preauth(std::size_t salt) {
  Buffer data;
  LittleEndianWriter out(data);
  out.u16(1), out.u16(static_cast<std::uint16_t>(salt)), out.u16(1);
  data.resize(data.size() + salt, std::byte{0x77});
  return data;
}
Buffer choices(std::initializer_list<std::uint16_t> values) {
  Buffer data;
  LittleEndianWriter out(data);
  out.u16(static_cast<std::uint16_t>(values.size()));
  for (const auto value : values) out.u16(value);
  return data;
}
Buffer compression() {
  Buffer data;
  LittleEndianWriter out(data);
  out.u16(2), out.u16(0), out.u32(1), out.u16(3), out.u16(4);
  return data;
}

void put(Buffer& body, const std::vector<Context>& contexts) {
  for (const Context& context : contexts) {
    body.resize((body.size() + 7) / 8 * 8);
    LittleEndianWriter out(body);
    out.u16(context.type), out.u16(static_cast<std::uint16_t>(context.data.size())), out.u32(0);
    append(body, context.data);
  }
}

Frame request(const std::vector<Context>& contexts, bool required = false) {
  Buffer body;
  LittleEndianWriter out(body);
  out.u16(36), out.u16(2), out.u16(required ? 2 : 1), out.u16(0), out.u32(0), out.zeros(16);
  out.u32(64 + 40), out.u16(static_cast<std::uint16_t>(contexts.size())), out.u16(0);
  out.u16(0x0302), out.u16(contexts.empty() ? 0x0300 : 0x0311);
  put(body, contexts);
  return {FrameKind::smb2, smb2::build_message({.command = Command::negotiate}, body)};
}

Frame answer(Dialect dialect, const std::vector<Context>& contexts, std::uint16_t mode = 1) {
  Buffer body;
  LittleEndianWriter out(body);
  out.u16(65), out.u16(mode), out.u16(static_cast<std::uint16_t>(dialect));
  out.u16(static_cast<std::uint16_t>(contexts.size())), out.zeros(16);
  out.u32(smb2::capabilities::large_mtu | smb2::capabilities::multi_channel);
  out.u32(1 << 20), out.u32(1 << 20), out.u32(1 << 20), out.zeros(16), out.u16(0), out.u16(0), out.u32(64 + 64);
  put(body, contexts);
  return {FrameKind::smb2,
          smb2::build_message({.command = Command::negotiate, .flags = smb2::header_flags::response}, body)};
}

auto parsed_request(const Frame& frame) { return smb2::parse_negotiate_request(frame.message()).value(); }
Buffer data_of(const smb2::NegotiateContexts& contexts, std::uint16_t type) {
  for (const auto& context : contexts)
    if (context.type == type) return {context.data.begin(), context.data.end()};
  return {};
}

}  // namespace

TEST_CASE("seal: the server gets a NEGOTIATE of 3.1.1 with another salt and no compression") {
  const Frame asked = request({{1, preauth(32)}, {3, compression()}, {2, choices({2, 1})}});
  const Frame sent = request_for_server(asked);
  REQUIRE(sent.bytes.size() == asked.bytes.size());
  const auto before = parsed_request(asked), after = parsed_request(sent);
  CHECK(data_of(after.contexts, 1) != data_of(before.contexts, 1));
  const Buffer old_preauth = data_of(before.contexts, 1), new_preauth = data_of(after.contexts, 1);
  CHECK(std::equal(old_preauth.begin(), old_preauth.begin() + 6, new_preauth.begin()));  // the lengths
  CHECK(data_of(after.contexts, 3) == Buffer{std::byte{2}, {}, {}, {}, std::byte{1}, {}, {}, {}, {}, {}, {}, {}});
  CHECK(data_of(after.contexts, 2) == data_of(before.contexts, 2));
  // And no two legs the same.
  CHECK(data_of(parsed_request(request_for_server(asked)).contexts, 1) != data_of(after.contexts, 1));
}

TEST_CASE("seal: NEGOTIATE of older dialects stays as it is: the client asks later what the server received") {
  const Frame asked = request({});
  CHECK(as_text(request_for_server(asked).bytes.bytes()) == as_text(asked.bytes.bytes()));
  const Frame answered = answer(Dialect::smb_3_0_2, {});
  const auto result = answer_for_client(&asked, answered).value();
  CHECK_FALSE(result.changed);
  CHECK(as_text(result.frame.bytes.bytes()) == as_text(answered.bytes.bytes()));
  CHECK(result.agreement.cipher == Cipher::aes_128_ccm);
  CHECK(result.agreement.signing == Signing::aes_cmac);
  CHECK(answer_for_client(&asked, answer(Dialect::smb_2_1, {})).value().agreement.signing == Signing::hmac_sha256);
}

TEST_CASE("seal: the client gets another salt, no multichannel, and what was agreed is known") {
  const Frame asked = request({{1, preauth(32)}});
  const Frame answered = answer(Dialect::smb_3_1_1, {{1, preauth(32)}, {2, choices({4})}, {8, choices({2})}});
  const auto result = answer_for_client(&asked, answered).value();
  CHECK(result.changed);
  CHECK(result.agreement.cipher == Cipher::aes_256_gcm);
  CHECK(result.agreement.signing == Signing::aes_gmac);
  CHECK_FALSE(result.agreement.must_sign);
  const auto before = smb2::parse_negotiate_response(answered.message()).value();
  const auto after = smb2::parse_negotiate_response(result.frame.message()).value();
  CHECK(data_of(after.contexts, 1) != data_of(before.contexts, 1));
  CHECK(data_of(after.contexts, 2) == data_of(before.contexts, 2));
  CHECK(after.capabilities == smb2::capabilities::large_mtu);
}

TEST_CASE("seal: signatures are required where the client or the server requires them") {
  const std::vector<Context> contexts{{1, preauth(32)}};
  const Frame lax = request(contexts), strict = request(contexts, true);
  CHECK(answer_for_client(&strict, answer(Dialect::smb_3_1_1, contexts)).value().agreement.must_sign);
  CHECK(answer_for_client(&lax, answer(Dialect::smb_3_1_1, contexts, 3)).value().agreement.must_sign);
  CHECK_FALSE(answer_for_client(&lax, answer(Dialect::smb_3_1_1, contexts)).value().agreement.must_sign);
}

TEST_CASE("seal: algorithms that are not known, and 3.1.1 without a salt to change, are an error") {
  const Frame asked = request({{1, preauth(32)}});
  CHECK_FALSE(answer_for_client(&asked, answer(Dialect::smb_3_1_1, {{1, preauth(32)}, {2, choices({5})}})).has_value());
  CHECK_FALSE(answer_for_client(&asked, answer(Dialect::smb_3_1_1, {{1, preauth(32)}, {8, choices({3})}})).has_value());
  CHECK_FALSE(answer_for_client(&asked, answer(Dialect::smb_3_1_1, {{1, preauth(7)}})).has_value());
  CHECK_FALSE(answer_for_client(&asked, answer(Dialect::smb_3_1_1, {})).has_value());
  CHECK_FALSE(answer_for_client(&asked, asked).has_value());
}
