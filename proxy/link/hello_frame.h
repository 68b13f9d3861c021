// SPDX-License-Identifier: Apache-2.0
// The first frame of each side on every carrier: what it can do, and which session it still has (PROTOCOL.md,
// section 2). Fields are added at the end, so that releases understand each other.
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

// Of an application's module; another version is another module.
struct ModuleName {
  std::string name;  // at most 32 bytes
  std::uint64_t version = 0;
  bool operator==(const ModuleName&) const = default;
};

// First frame of each side on every carrier. The dialler speaks first; the acceptor's answer decides.
struct HelloFrame {
  std::uint64_t version = kProtocolVersion;
  Token session{};     // the session this side still holds with the peer; all zero: none
  Token nonce{};       // random, new for every hello; makes the id of a new session
  std::string site{};  // for logs only, at most 64 bytes
  // The UDP carrier (PROTOCOL.md, section 11). All zero from a side without one, or from an older release.
  std::uint16_t udp_port = 0;  // where the sender receives packets
  std::uint64_t epoch = 0;     // of keys, at most kMaxEpoch; the acceptor answers the dialler's
  std::uint8_t ciphers = 0;    // udp::Cipher bits: offered by the dialler, one of them chosen by the acceptor
  // The version of the blocks that the sender makes and reads (PROTOCOL.md, section 4). 0: none, or an older
  // release.
  std::uint64_t blocks = 0;
  std::vector<ModuleName> modules{};  // whose halves the sender has (section 4); an older release has none
  // The module features that the sender knows: the place of a name is its number in records of features.
  std::vector<std::string> features{};
  // The lines that the sender wants to use at once (section 11): by the dialler, whose order numbers them
  // from 0; by the acceptor, those of them that it knows. Empty: one line, or an older release.
  std::vector<std::string> paths{};
};

// The body of the frame. No result: it is malformed. Of another version only the number is read.
std::optional<HelloFrame> read_hello(ByteReader& in);
void write_hello(const HelloFrame& hello, ByteWriter& body);

}  // namespace longhaul::link
