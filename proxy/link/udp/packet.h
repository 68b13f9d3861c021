// SPDX-License-Identifier: Apache-2.0
// Packets of the UDP carrier (PROTOCOL.md, section 11): the header, numbers, encryption and decryption, and
// the change of keys. carrier_frames.h has their content; the carrier decides which packets are sent.
#pragma once
#include <optional>

#include "proxy/link/types.h"
#include "proxy/link/udp/packet_cipher.h"
#include "proxy/link/udp/packet_keys.h"
#include "proxy/link/udp/replay_window.h"

namespace longhaul::link::udp {

// packet = flags:u8 connection id:8 number:u32 (low bits) ciphertext tag:16
inline constexpr std::size_t kPacketHeaderBytes = 1 + ConnectionId::kSize + 4;
inline constexpr std::size_t kPacketOverhead = kPacketHeaderBytes + kPacketTagBytes;

enum class PacketError {
  not_a_packet = 1,  // too short, unknown flags, or another connection's
  not_authentic,     // decryption failed: forged, damaged, or under keys no longer stored
  seen_before,       // authentic, but a replay, or older than the replay window
  keys_worn_out,     // a limit of RFC 9001, section 6.6: new keys need a new epoch
  too_far_ahead,     // too many unacknowledged packets for the 32 bits of a number
};
const boost::system::error_category& packet_category();
inline boost::system::error_code make_error_code(PacketError error) {
  return {static_cast<int>(error), packet_category()};
}

// Alternates with every change of keys of its direction, so that a receiver knows which keys to use.
enum class KeyPhase : std::uint8_t { even = 0, odd = 1 };

struct PacketHeader {
  KeyPhase phase = KeyPhase::even;
  ConnectionId id;
  std::uint32_t low_number = 0;  // the low 32 bits
};
// Returns nullopt if this is not a packet of this protocol. Checks the header and the length only.
std::optional<PacketHeader> read_packet_header(Bytes datagram);
void write_packet_header(const PacketHeader& header, std::span<std::byte, kPacketHeaderBytes> out);

// RFC 9000, appendix A.3: the number closest to `expected` (the highest received, plus one) with these low
// bits.
PacketNumber decode_packet_number(PacketNumber expected, std::uint32_t low_number);

// The limits of one key, and of all keys of a direction (RFC 9001, section 6.6). Tests set lower ones.
struct PacketLimits {
  // Packets under one key after which the next key is used, and after which nothing more is encrypted. 2^23
  // is the limit of AES-GCM; ChaCha20-Poly1305 has no practical limit, but one rule is simpler.
  std::uint64_t update_after = std::uint64_t{1} << 22;
  std::uint64_t packets_per_key = std::uint64_t{1} << 23;
  // How many numbers there are, and how far one may be ahead of the highest acknowledged one, so that its low
  // 32 bits suffice (RFC 9000, section 17.1).
  std::uint64_t numbers = std::uint64_t{1} << 62;
  std::uint64_t unacknowledged = std::uint64_t{1} << 31;
  // Packets that failed to decrypt, under all keys together.
  std::optional<std::uint64_t> failed_opens = std::nullopt;  // nullopt: 2^52 for AES, 2^36 for ChaCha20
};

// Assigns numbers and encrypts this side's packets. Owns the numbers: none is ever used twice, whatever the
// caller does.
class PacketSealer {
 public:
  PacketSealer(const DirectionKeys& keys, Cipher cipher, PacketLimits limits = {});

  // The number of the next packet.
  PacketNumber next_number() const { return next_number_; }

  // `packet` is the whole datagram: room for kPacketHeaderBytes, the payload (at least a byte), room for
  // kPacketTagBytes. After an error nothing has changed and the packet must not be sent.
  Result<PacketNumber> seal(MutableBytes packet);

  // The peer acknowledged `number`. Keys change again only after a packet under the current ones was
  // acknowledged (RFC 9001, section 6.1), so a side that sends only acknowledgements must send a packet that
  // is acknowledged while update_waits().
  void on_acknowledged(PacketNumber number);
  bool update_waits() const { return sealed_ >= limits_.update_after && !confirmed(); }

  std::uint64_t key_updates() const { return generation_; }

 private:
  bool confirmed() const { return end_acknowledged_ > first_of_phase_; }
  void update_keys();

  ConnectionId id_;
  Cipher kind_;
  PacketLimits limits_;
  TrafficSecret secret_;
  PacketCipher cipher_;
  PacketNumber next_number_;
  PacketNumber first_of_phase_;
  PacketNumber end_acknowledged_;  // one more than the highest acknowledged number
  std::uint64_t sealed_ = 0;       // under the current key
  std::uint64_t generation_ = 0;
};

struct OpenedPacket {
  PacketNumber number;
  MutableBytes payload;  // inside the datagram
};

// Decrypts the peer's packets of one direction. Packets that are not authentic change nothing except a
// counter.
class PacketOpener {
 public:
  struct Counters {
    std::uint64_t opened = 0;
    std::uint64_t not_authentic = 0;
    std::uint64_t seen_before = 0;
    std::uint64_t key_updates = 0;
  };

  PacketOpener(const DirectionKeys& keys, Cipher cipher, PacketLimits limits = {});

  // Decrypts in place; after an error the datagram's bytes are undefined and must not be used.
  Result<OpenedPacket> open(MutableBytes datagram, TimePoint now);

  // How long keys are kept after a change, for packets that were reordered: three probe timeouts (RFC 9001,
  // section 6.5).
  void keep_previous_keys(Duration time) { keep_previous_ = time; }

  const ConnectionId& id() const { return id_; }
  const Counters& counters() const { return counters_; }

 private:
  PacketCipher* cipher_for(KeyPhase phase, PacketNumber number, TimePoint now);
  void update_keys(TimePoint now);

  ConnectionId id_;
  Cipher kind_;
  std::uint64_t failed_opens_;
  Duration keep_previous_ = std::chrono::seconds(3);
  TrafficSecret next_secret_;
  PacketCipher current_, next_;  // derived in advance, so that a forged phase bit costs no derivation
  std::optional<PacketCipher> previous_;
  TimePoint previous_until_{};
  KeyPhase phase_ = KeyPhase::even;
  PacketNumber of_this_phase_;  // the lowest number decrypted with the current keys
  ReplayWindow seen_;
  Counters counters_;
};

}  // namespace longhaul::link::udp

template <>
struct boost::system::is_error_code_enum<longhaul::link::udp::PacketError> : std::true_type {};
