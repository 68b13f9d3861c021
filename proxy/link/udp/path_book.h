// SPDX-License-Identifier: Apache-2.0
// Measurements of the paths to peers as text, for the next start of the daemon. It is accepted as a whole or
// not at all. proxy/path_keeper.h handles the file.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class PathBook {
 public:
  // Far more than a daemon has peers; bounds what is read.
  static constexpr std::size_t kMostPaths = 4096;
  static constexpr std::size_t kMostBytes = 1 << 20;

  // No result for any text that text() did not produce: truncated, damaged or edited.
  static std::optional<PathBook> parse(std::string_view text);
  std::string text() const;

  // By the peer's fingerprint, as the configuration has it.
  std::optional<PathMemory> find(const std::string& fingerprint) const;
  // Impossible values are left out.
  void put(const std::string& fingerprint, const PathMemory& memory);

  bool empty() const { return paths_.empty(); }
  // The same peers, and no difference that a transfer would notice.
  bool resembles(const PathBook& other) const;

 private:
  std::map<std::string, PathMemory> paths_;
};

}  // namespace longhaul::link::udp
