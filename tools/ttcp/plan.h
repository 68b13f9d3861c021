// SPDX-License-Identifier: Apache-2.0
// Which tests a sweep consists of: kinds, packet sizes, trials. Leaves how one test is carried out to
// send.h and receive.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul::ttcp {

enum class Kind {
  tcp,
  udp,
  udp_padded,        // UDP+12: padding that makes up for TCP's larger header
  udp_padded_setup,  // the same, and a TCP connection is set up inside the measured time
};
inline constexpr std::size_t kKinds = 4;

constexpr bool is_udp(Kind kind) { return kind != Kind::tcp; }
constexpr bool is_padded(Kind kind) { return kind == Kind::udp_padded || kind == Kind::udp_padded_setup; }
constexpr bool has_setup(Kind kind) { return kind == Kind::udp_padded_setup; }

inline constexpr std::uint32_t kTcpHeaderBytes = 20;
inline constexpr std::uint32_t kUdpHeaderBytes = 8;
// A datagram names its test and its number; smaller ones could not be told from others.
inline constexpr std::uint32_t kLeastPacketBytes = 16;
inline constexpr std::uint32_t kMostDatagramBytes = 65'507;  // over IPv4, RFC 768 and RFC 791
inline constexpr std::uint32_t kMostPadding = 1024;
inline constexpr std::uint32_t kMostSocketBuffer = 1u << 30;
inline constexpr std::uint64_t kMostPackets = 100'000'000;

struct Test {
  Kind kind = Kind::tcp;
  unsigned trial = 1;
  std::uint32_t packet_bytes = 0;  // of data
  std::uint32_t padding_bytes = 0;
  std::uint64_t packets = 0;

  std::uint32_t payload_bytes() const { return packet_bytes + padding_bytes; }
  // Padding counts as header: it is there to make both kinds' headers equal.
  std::uint32_t header_bytes() const {
    return is_udp(kind) ? kUdpHeaderBytes + padding_bytes : kTcpHeaderBytes;
  }
};

struct PlanOptions {
  std::vector<std::uint32_t> sizes{32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};  // source 5
  std::vector<Kind> kinds{Kind::tcp, Kind::udp, Kind::udp_padded};
  unsigned trials = 5;
  std::uint64_t bytes = 8 * 1024 * 1024;  // of each test, so that small packets are many
  std::optional<std::uint64_t> packets;   // the same number at each size instead
  std::uint32_t padding_bytes = 12;
};

// Trial by trial, so that an interrupted sweep holds whole trials. Throws std::invalid_argument with a
// sentence.
std::vector<Test> make_plan(const PlanOptions& options);

// "UDP+12"; the number is the padding's.
std::string name_of(Kind kind, std::uint32_t padding_bytes);
// The names as a user types them: tcp, udp, udp+12, udp+12+rtt.
std::optional<Kind> parse_kind(std::string_view text);

}  // namespace longhaul::ttcp
