// SPDX-License-Identifier: Apache-2.0
// What the line must know of an Ethernet frame: its IP bytes, how to finish a checksum that the sender left
// to hardware, how to mark congestion, and how to damage a payload unnoticed. Leaves everything else in the
// frame alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "tools/wan/link.h"

namespace longhaul::wan {

constexpr std::size_t kEthernetHeader = 14;
constexpr std::size_t kVlanTag = 4;

// IP packets count by their own length, so that Ethernet padding costs nothing; everything else by its
// payload.
std::uint32_t ip_bytes(std::span<const std::byte> frame);

// A sender with checksum offload leaves the sum of the pseudo header in the TCP or UDP checksum field;
// replaces it by the whole sum. False where the frame is not a TCP or UDP packet this function can read,
// which is then unchanged.
bool finish_checksum(std::span<std::byte> frame);

// The flow by addresses, protocol and ports, and what the IP header says of ECN; frames that are no IP
// packets are one flow.
PacketTraits traits_of(std::span<const std::byte> frame);
// Congestion experienced (RFC 3168), with the header's checksum updated; nothing where the frame is no IP
// packet.
void mark_congestion(std::span<std::byte> frame);

// Flips one bit of a TCP or UDP payload, `at` as a share of its bits ([0, 1)), and updates the checksum (RFC
// 1624), so that the receiving host notices nothing. False where there is no such payload; then the frame is
// unchanged.
bool flip_payload_bit(std::span<std::byte> frame, double at);

}  // namespace longhaul::wan
