// SPDX-License-Identifier: Apache-2.0
// The switches a user turns per test: one value for each, the presets of the measured sources, and how two
// sides' wishes meet. Parsing from text is here too, because the file, the command line and the API share it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codecs/result.h"

namespace longhaul::config {

enum class Transport : std::uint8_t { automatic, udp, tcp, off };

struct Fec {
  enum class Mode : std::uint8_t { off, adaptive, fixed } mode = Mode::adaptive;
  std::uint8_t source_packets = 0;  // K of K:M, only with Mode::fixed; 1 to 255
  std::uint8_t repair_packets = 0;  // M of K:M; 1 to 255, K + M <= 255
  bool operator==(const Fec&) const = default;
};

struct Features {
  Transport transport = Transport::automatic;
  std::uint32_t window_bytes = 0;  // 0: automatic; otherwise a fixed bound on what one flow has in flight
  bool fast_connect = true;
  bool compression = true;
  bool dedup_memory = true;
  bool dedup_disk = true;
  Fec fec;
  bool smb = true;
  bool http = true;
  bool mapi = true;
  bool nfs = true;
  bool dns = true;
  bool operator==(const Features&) const = default;
};

// Changes one feature by the name and value a user types ("compression", "true"; "fec", "10:2"; "preset", "A+F").
// On error nothing is changed; the message says what would have been accepted.
struct FeatureError {
  std::string message;
};
boost::system::result<void, FeatureError> set_feature(Features& features, std::string_view name,
                                                      std::string_view value);

// Every feature with its value as text, in the order of the documentation.
std::vector<std::pair<std::string_view, std::string>> to_text(const Features& features);

// What both sides allow: the far side's view of a flow that the client's side asked for.
Features meet(const Features& asked, const Features& allowed);

}  // namespace longhaul::config
