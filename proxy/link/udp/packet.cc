// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet.h"

#include <endian.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace longhaul::link::udp {
namespace {

constexpr std::uint8_t kFixedBit = 0x40;
constexpr std::uint8_t kPhaseBit = 0x01;

class Category : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "packet"; }
  std::string message(int code) const override {
    switch (static_cast<PacketError>(code)) {
      case PacketError::not_a_packet:
        return "not a packet of this connection";
      case PacketError::not_authentic:
        return "the packet is forged, damaged, or older than the keys";
      case PacketError::seen_before:
        return "the packet is a duplicate";
      case PacketError::keys_worn_out:
        return "the keys have reached their usage limit";
      case PacketError::too_far_ahead:
        return "too many packets are unacknowledged, so no packet number can be assigned";
    }
    return "unknown packet error";
  }
};

KeyPhase other(KeyPhase phase) { return phase == KeyPhase::even ? KeyPhase::odd : KeyPhase::even; }

}  // namespace

const boost::system::error_category& packet_category() {
  static const Category category;
  return category;
}

std::optional<PacketHeader> read_packet_header(Bytes datagram) {
  if (datagram.size() <= kPacketOverhead) return std::nullopt;
  auto flags = std::to_integer<std::uint8_t>(datagram[0]);
  if ((flags & ~kPhaseBit) != kFixedBit) return std::nullopt;
  PacketHeader header{.phase = flags & kPhaseBit ? KeyPhase::odd : KeyPhase::even};
  std::copy_n(datagram.begin() + 1, ConnectionId::kSize, header.id.bytes.begin());
  std::memcpy(&header.low_number, datagram.data() + 1 + ConnectionId::kSize, sizeof header.low_number);
  header.low_number = be32toh(header.low_number);
  return header;
}

void write_packet_header(const PacketHeader& header, std::span<std::byte, kPacketHeaderBytes> out) {
  out[0] = std::byte{header.phase == KeyPhase::odd ? std::uint8_t{kFixedBit | kPhaseBit} : kFixedBit};
  std::copy(header.id.bytes.begin(), header.id.bytes.end(), out.begin() + 1);
  const std::uint32_t low_number = htobe32(header.low_number);
  std::memcpy(out.data() + 1 + ConnectionId::kSize, &low_number, sizeof low_number);
}

PacketNumber decode_packet_number(PacketNumber expected, std::uint32_t low_number) {
  constexpr std::uint64_t window = std::uint64_t{1} << 32, half = window / 2;
  const PacketNumber candidate((expected.number() & ~(window - 1)) | low_number);
  if (candidate + half <= expected && candidate.number() < (std::uint64_t{1} << 62) - window)
    return candidate + window;
  if (candidate > expected + half && candidate.number() >= window) return candidate - window;
  return candidate;
}

PacketSealer::PacketSealer(const DirectionKeys& keys, Cipher cipher, PacketLimits limits)
    : id_(keys.id),
      kind_(cipher),
      limits_(limits),
      secret_(keys.secret),
      cipher_(packet_key(secret_, kind_), kind_, PacketCipher::Use::seal) {}

Result<PacketNumber> PacketSealer::seal(MutableBytes packet) {
  assert(packet.size() > kPacketOverhead);
  if (next_number_.number() >= limits_.numbers) return PacketError::keys_worn_out;
  if (next_number_ - end_acknowledged_ >= limits_.unacknowledged) return PacketError::too_far_ahead;
  if (sealed_ >= limits_.update_after && confirmed()) update_keys();
  if (sealed_ >= limits_.packets_per_key) return PacketError::keys_worn_out;

  const PacketNumber number = next_number_;
  ++next_number_;
  ++sealed_;
  auto header = packet.first<kPacketHeaderBytes>();
  write_packet_header(
      {.phase = generation_ % 2 ? KeyPhase::odd : KeyPhase::even, .id = id_, .low_number = low_bits(number)},
      header);
  cipher_.seal(number, header, packet.subspan(kPacketHeaderBytes, packet.size() - kPacketOverhead),
               packet.last<kPacketTagBytes>());
  return number;
}

void PacketSealer::on_acknowledged(PacketNumber number) {
  if (number < next_number_) end_acknowledged_ = std::max(end_acknowledged_, number + 1);
}

void PacketSealer::update_keys() {
  secret_ = next_secret(secret_);
  cipher_ = PacketCipher(packet_key(secret_, kind_), kind_, PacketCipher::Use::seal);
  first_of_phase_ = next_number_;
  sealed_ = 0;
  ++generation_;
}

PacketOpener::PacketOpener(const DirectionKeys& keys, Cipher cipher, PacketLimits limits)
    : id_(keys.id),
      kind_(cipher),
      failed_opens_(limits.failed_opens.value_or(cipher == Cipher::aes_128_gcm ? std::uint64_t{1} << 52
                                                                               : std::uint64_t{1} << 36)),
      next_secret_(next_secret(keys.secret)),
      current_(packet_key(keys.secret, cipher), cipher, PacketCipher::Use::open),
      next_(packet_key(next_secret_, cipher), cipher, PacketCipher::Use::open) {}

Result<OpenedPacket> PacketOpener::open(MutableBytes datagram, TimePoint now) {
  auto header = read_packet_header(datagram);
  if (!header || header->id != id_) return PacketError::not_a_packet;
  if (counters_.not_authentic >= failed_opens_) return PacketError::keys_worn_out;

  PacketNumber number = decode_packet_number(seen_.end(), header->low_number);
  PacketCipher* cipher = cipher_for(header->phase, number, now);
  MutableBytes payload = datagram.subspan(kPacketHeaderBytes, datagram.size() - kPacketOverhead);
  if (!cipher || !cipher->open(number, datagram.first<kPacketHeaderBytes>(), payload,
                               datagram.last<kPacketTagBytes>())) {
    ++counters_.not_authentic;
    return PacketError::not_authentic;
  }
  if (!seen_.take(number)) {
    ++counters_.seen_before;
    return PacketError::seen_before;
  }
  if (cipher == &next_) {
    update_keys(now);
    of_this_phase_ = number;
  }
  ++counters_.opened;
  return OpenedPacket{number, payload};
}

// RFC 9001, section 6.3: the packet number distinguishes two phases with the same bit. Numbers only increase
// from phase to phase, so any number of the current phase separates earlier from later ones.
PacketCipher* PacketOpener::cipher_for(KeyPhase phase, PacketNumber number, TimePoint now) {
  if (previous_ && now >= previous_until_) previous_.reset();
  if (phase == phase_) return &current_;
  if (number >= of_this_phase_) return &next_;
  return previous_ ? &*previous_ : nullptr;
}

void PacketOpener::update_keys(TimePoint now) {
  previous_ = std::move(current_);
  previous_until_ = now + keep_previous_;
  current_ = std::move(next_);
  next_secret_ = next_secret(next_secret_);
  next_ = PacketCipher(packet_key(next_secret_, kind_), kind_, PacketCipher::Use::open);
  phase_ = other(phase_);
  ++counters_.key_updates;
}

}  // namespace longhaul::link::udp
