// SPDX-License-Identifier: Apache-2.0
// Both legs of a connection with two sessions, and the handshake, and those of SMB1: frames of any content
// arrive at either side, some of them signed or encrypted with the right key, and whatever is opened is
// sealed on the other side. Nothing leaves a leg with the marks of the way between them.
#include "codecs/little_endian.h"
#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/seal/handshake.h"
#include "proxy/modules/smb/seal/leg.h"
#include "proxy/modules/smb/seal/smb1_leg.h"

namespace longhaul::fuzz::smb_legs_target {
using namespace longhaul::smb;
using namespace longhaul::smb::seal;

namespace {

SessionKeys keys_of(unsigned first, std::size_t size) {
  SessionKeys keys;
  keys.signing.bytes.fill(std::byte(first));
  keys.to_server = SecretBytes(size);
  keys.to_client = SecretBytes(size);
  std::fill_n(keys.to_server.data(), size, std::byte(first + 1));
  std::fill_n(keys.to_client.data(), size, std::byte(first + 2));
  return keys;
}

Slice framed(Bytes message) {
  std::array<std::byte, kFrameHeadBytes> head;
  write_frame_head(message.size(), head.data());
  return Slice::joined(head, message);
}

// As the client (the server) itself would protect it.
Slice protect(Choices& choices, Buffer message, Signer& signer, Transform& transform) {
  if (message.size() < smb2::kHeaderBytes) return framed(message);
  store_le(message.data(), smb2::kProtocolId);
  store_le(message.data() + 4, std::uint16_t{64});
  store_le(message.data() + smb2::header_at::next_command, std::uint32_t{0});
  store_le(message.data() + 40, std::uint64_t{1 + choices.below(3)});
  const unsigned how = choices.below(3);
  const Bytes whole = message;
  if (how == 1) return transform.seal(1, std::span(&whole, 1), whole.size());
  if (how == 2) {
    const auto flags = load_le<std::uint32_t>(whole, smb2::header_at::flags);
    store_le(message.data() + smb2::header_at::flags, flags | smb2::header_flags::is_signed);
    const Bytes body = whole.subspan(smb2::kHeaderBytes);
    const Signature signature = signer.sign(whole.first(smb2::kHeaderBytes), std::span(&body, 1));
    std::copy(signature.begin(), signature.end(), message.begin() + smb2::header_at::signature);
  }
  return framed(message);
}

void send_on(Leg& leg, const Slice& frame, Choices& choices) {
  std::vector<Slice> out;
  const std::size_t cut = choices.byte() % (frame.size() + 1);
  if (!leg.seal(frame.sub(0, cut), out) || !leg.seal(frame.from(cut), out)) return;
  std::size_t size = 0;
  for (const Slice& piece : out) size += piece.size();
  require(size >= frame.size());
}

// The same frames as messages of SMB1, signed with the number that is due.
class Smb1 {
 public:
  Smb1() {
    near_.begin(twin::MessageNumber(1), kKey);
    far_.begin(twin::MessageNumber(1), kKey);
  }
  void pass(Bytes content, bool is_servers, bool is_signed) {
    Buffer message(content.begin(), content.end());
    if (message.size() < smb1::kHeaderBytes) return;
    store_le(message.data(), std::uint32_t{0x424D53FF});
    if (is_signed) {
      const Bytes rest = Bytes(message).subspan(smb1::kHeaderBytes);
      const auto signature = Smb1Signer(kKey).sign(
          is_servers ? 1 : next_, Bytes(message).first(smb1::kHeaderBytes), std::span(&rest, 1));
      std::copy(signature.begin(), signature.end(), message.begin() + smb1_at::signature);
    }
    const Slice frame = framed(message);
    const auto opened = (is_servers ? far_ : near_).open({FrameKind::smb1, frame});
    if (!is_servers) next_ += message[smb1_at::command] == std::byte{0xA4} ? 1 : 2;
    if (!opened) return;
    require(opened->bytes.size() == frame.size());
    std::vector<Slice> out;
    if (!(is_servers ? near_ : far_).seal(opened->bytes, out)) return;
    std::size_t size = 0;
    for (const Slice& piece : out) size += piece.size();
    require(size == frame.size());
  }

 private:
  static inline const Buffer kKey = Buffer(16, std::byte{7});
  Smb1Leg near_{Smb1Leg::To::client}, far_{Smb1Leg::To::server};
  std::uint32_t next_ = 2;
};

}  // namespace

FUZZ_TARGET(smb_legs) {
  Choices choices(std::as_bytes(std::span(data, size)));
  Agreement agreement{.dialect = smb2::Dialect::smb_3_1_1,
                      .signing = static_cast<Signing>(choices.below(3)),
                      .cipher = static_cast<Cipher>(1 + choices.below(4)),
                      .must_sign = choices.below(2) == 1};
  const std::size_t bytes = key_bytes(agreement.cipher);
  Leg near(Leg::To::client), far(Leg::To::server);
  for (const smb2::SessionId session : {1, 2}) {
    (void)near.begin(session, agreement, keys_of(1, bytes));
    (void)far.begin(session, agreement, keys_of(101, bytes));
  }
  Signer client_signer(agreement.signing, keys_of(1, bytes).signing),
      server_signer(agreement.signing, keys_of(101, bytes).signing);
  Transform client(agreement.cipher, keys_of(1, bytes).to_server),
      server(agreement.cipher, keys_of(101, bytes).to_client);
  Handshake handshake(nullptr);
  Smb1 older;

  while (!choices.empty()) {
    const bool is_servers = choices.below(2) == 1;
    const std::size_t high = choices.byte(), low = choices.byte();
    const Bytes content = choices.exactly(high << 8 | low);
    older.pass(content, is_servers, (low & 1) != 0);
    const Slice frame = protect(choices, {content.begin(), content.end()},
                                is_servers ? server_signer : client_signer, is_servers ? server : client);
    FrameSplitter splitter(Framing::direct_tcp);
    splitter.push(frame);
    const auto next = splitter.next();
    if (!next || !*next) continue;
    if (is_servers) {
      (void)handshake.from_server(**next);
    } else {
      (void)handshake.from_client(**next);
    }
    const auto opened = (is_servers ? far : near).open(**next);
    if (!opened) continue;
    send_on(is_servers ? near : far, opened->bytes, choices);
  }
  return 0;
}

}  // namespace longhaul::fuzz::smb_legs_target
