// SPDX-License-Identifier: Apache-2.0
// Both legs of a connection, each with its own keys, and the messages of the client and the server at their
// ends.
#pragma once
#include <catch2/catch.hpp>
#include <vector>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/seal/leg.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::seal::legs {

using namespace longhaul::smb::smb2::test;
using smb2::Command;

inline constexpr smb2::SessionId kOurs = 0x51, kNobodys = 0x99, kAnother = 0x52;

inline SessionKeys keys_of(std::uint8_t first) {
  SessionKeys keys;
  keys.signing.bytes.fill(std::byte{first});
  keys.to_server = SecretBytes(16);
  keys.to_client = SecretBytes(16);
  std::fill_n(keys.to_server.data(), 16, std::byte(first + 1));
  std::fill_n(keys.to_client.data(), 16, std::byte(first + 2));
  return keys;
}

inline smb2::Dialect dialect_with(Signing signing) {
  return signing == Signing::hmac_sha256 ? smb2::Dialect::smb_2_1
         : signing == Signing::aes_cmac  ? smb2::Dialect::smb_3_0
                                         : smb2::Dialect::smb_3_1_1;
}

struct Ends {
  explicit Ends(Signing signing = Signing::aes_gmac, bool must_sign = false)
      : agreement{.dialect = dialect_with(signing),
                  .signing = signing,
                  .cipher = Cipher::aes_128_gcm,
                  .must_sign = must_sign} {
    REQUIRE(near.begin(kOurs, agreement, keys_of(1)));
    REQUIRE(far.begin(kOurs, agreement, keys_of(101)));
  }
  Agreement agreement;
  // The client and the server themselves: each is the other end of a leg.
  Signer client_signer{agreement.signing, keys_of(1).signing},
      server_signer{agreement.signing, keys_of(101).signing};
  Transform client_out{Cipher::aes_128_gcm, keys_of(1).to_server},
      client_in{Cipher::aes_128_gcm, keys_of(1).to_client},
      server_in{Cipher::aes_128_gcm, keys_of(101).to_server},
      server_out{Cipher::aes_128_gcm, keys_of(101).to_client};
  Leg near{Leg::To::client}, far{Leg::To::server};
};

inline Slice frame_of(Command command, smb2::test::AnyId id, std::uint32_t flags = 0, std::size_t body = 100,
                      Status status = Status::success, smb2::SessionId session = kOurs) {
  smb2::Header header{.credit_charge = 1,
                      .command = command,
                      .credits = 1,
                      .flags = flags,
                      .message_id = id,
                      .tree_id = 7,
                      .session_id = session};
  header.status = status;
  Buffer bytes(body, std::byte{0x5a});
  return smb2::build_message(header, bytes);
}

inline Slice frame_of(Command command, smb2::test::AnyId id, std::uint32_t flags, const Body& body) {
  return smb2::build_message(
      {.command = command, .credits = 1, .flags = flags, .message_id = id, .tree_id = 7, .session_id = kOurs},
      body.bytes);
}

inline Slice with_signature(Signer& signer, const Slice& frame) {
  std::byte* memory = nullptr;
  Slice copy = Slice::unfilled(frame.size(), memory);
  std::copy(frame.bytes().begin(), frame.bytes().end(), memory);
  std::byte* const header = memory + kFrameHeadBytes;
  store_le(header + smb2::header_at::flags,
           load_le<std::uint32_t>({header, 64}, smb2::header_at::flags) | smb2::header_flags::is_signed);
  const Bytes body = frame.bytes().subspan(kFrameHeadBytes + 64);
  const Signature signature = signer.sign({header, 64}, std::span(&body, 1));
  std::copy(signature.begin(), signature.end(), header + smb2::header_at::signature);
  return copy;
}

inline Slice encrypted(Transform& transform, const Slice& frame) {
  const Bytes message = frame.bytes().subspan(kFrameHeadBytes);
  return transform.seal(kOurs, std::span(&message, 1), message.size());
}

inline bool is_signed_by(Signer& signer, const Slice& frame) {
  const Bytes message = frame.bytes().subspan(kFrameHeadBytes);
  return (load_le<std::uint32_t>(message, smb2::header_at::flags) & smb2::header_flags::is_signed) &&
         signer.verify(message.first(64), message.subspan(64));
}

inline Slice sent(Leg& leg, const std::vector<Slice>& pieces) {
  std::vector<Slice> out;
  for (const Slice& piece : pieces)
    if (!leg.seal(piece, out)) return {};
  Buffer all;
  for (const Slice& piece : out) all.insert(all.end(), piece.bytes().begin(), piece.bytes().end());
  return Slice::copy_of(all);
}

inline Frame arrived(const Slice& bytes) {
  const bool transform = bytes.bytes()[4] == std::byte{0xFD};
  return {transform ? FrameKind::smb2_transform : FrameKind::smb2, bytes};
}

inline const auto kForged = smb::make_error_code(Error::forged);
inline const auto kUnprotected = smb::make_error_code(Error::unprotected);

// A client's request, through both legs; false: it was refused.
inline bool goes_through(Ends& ends, const Slice& request, bool encrypts = false) {
  const auto between = ends.near.open(
      arrived(encrypts ? encrypted(ends.client_out, request) : with_signature(ends.client_signer, request)));
  return between && !sent(ends.far, {between->bytes}).empty();
}
// What the far leg says of an answer.
inline boost::system::error_code answered(Ends& ends, const Slice& answer, bool encrypts = false) {
  const auto opened = ends.far.open(
      arrived(encrypts ? encrypted(ends.server_out, answer) : with_signature(ends.server_signer, answer)));
  return opened ? boost::system::error_code() : opened.error();
}

inline std::uint32_t flags_in(const Frame& frame) {
  return load_le<std::uint32_t>(frame.message(), smb2::header_at::flags);
}

}  // namespace longhaul::smb::seal::legs
