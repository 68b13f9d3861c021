// SPDX-License-Identifier: Apache-2.0
// Seals packets with both ciphers and compares the times.
#include "proxy/link/io/cipher_choice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "proxy/link/udp/packet_cipher.h"

namespace longhaul::link::udp {

Cipher choose_cipher() {
  static const Cipher faster = [] {
    using Clock = std::chrono::steady_clock;
    // Alternate rounds of both, and take the best of each, so that an interruption of the thread affects
    // neither.
    constexpr int kRounds = 8, kPackets = 32;
    constexpr Cipher kCiphers[] = {Cipher::aes_128_gcm, Cipher::chacha20_poly1305};
    std::array<std::byte, 13> header{};
    std::vector<std::byte> text(1400);
    std::array<std::byte, kPacketTagBytes> tag;
    Clock::duration best[] = {Clock::duration::max(), Clock::duration::max()};
    PacketCipher ciphers[] = {{PacketKey{}, kCiphers[0], PacketCipher::Use::seal},
                              {PacketKey{}, kCiphers[1], PacketCipher::Use::seal}};
    PacketNumber number;
    for (int round = 0; round < kRounds; ++round)
      for (int i : {0, 1}) {
        auto start = Clock::now();
        for (int packet = 0; packet < kPackets; ++packet) ciphers[i].seal(++number, header, text, tag);
        best[i] = std::min(best[i], Clock::now() - start);
      }
    return kCiphers[best[1] < best[0] ? 1 : 0];
  }();
  return faster;
}

}  // namespace longhaul::link::udp
