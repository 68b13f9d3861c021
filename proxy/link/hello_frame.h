// SPDX-License-Identifier: Apache-2.0
// The first frame of each side on every carrier: the features it supports, and the session it still holds
// (PROTOCOL.md, section 2). New fields are added at the end, so that releases understand each other.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codecs/byte_reader.h"
#include "codecs/byte_writer.h"
#include "proxy/link/types.h"

namespace longhaul::link {

inline constexpr std::uint64_t kProtocolVersion = 1;
inline constexpr std::uint64_t kBlockVersion = 2;
inline constexpr std::string_view kBlockExporterLabel = "EXPORTER-longhaul-blocks";
// Lines of one session.
inline constexpr std::size_t kMaxPaths = 8, kMaxPathNameBytes = 32;
// Limit of the number of UDP keys: far more connections than a session can have, and far from an overflow.
inline constexpr std::uint64_t kMaxEpoch = 1ull << 48;

using Token = std::array<std::byte, 16>;

// The module of an application. A different version is a different module.
struct ModuleName {
  std::string name;  // at most 32 bytes
  std::uint64_t version = 0;
  bool operator==(const ModuleName&) const = default;
};

// First frame of each side on every carrier. The dialler sends first; the acceptor's HELLO decides.
struct HelloFrame {
  std::uint64_t version = kProtocolVersion;
  Token session{};     // the session this side still holds with the peer; all zero: none
  Token nonce{};       // random, new for every hello; the id of a new session is derived from it
  std::string site{};  // for logs only, at most 64 bytes
  // The UDP carrier (PROTOCOL.md, section 11). All zero from a side without one, or from an older release.
  std::uint16_t udp_port = 0;  // where the sender receives packets
  std::uint64_t epoch = 0;     // of keys, at most kMaxEpoch; the acceptor repeats the dialler's
  std::uint8_t ciphers = 0;    // udp::Cipher bits: offered by the dialler, one of them chosen by the acceptor
  // The version of the blocks that the sender makes and reads (PROTOCOL.md, section 4). 0: none, or an older
  // release.
  std::uint64_t blocks = 0;
  std::vector<ModuleName> modules{};  // whose halves the sender has (section 4); empty: an older release
  // The module features that the sender supports: a name's index is its number in records of features.
  std::vector<std::string> features{};
  // The lines to be used at the same time (section 11). From the dialler, whose order numbers them from 0;
  // from the acceptor, those of them that it has configured. Empty: one line, or an older release.
  std::vector<std::string> paths{};
};

// Parses the body of the frame. Returns nullopt if it is malformed. For another version only the version
// number is read.
std::optional<HelloFrame> read_hello(ByteReader& in);
void write_hello(const HelloFrame& hello, ByteWriter& body);

}  // namespace longhaul::link
