// SPDX-License-Identifier: Apache-2.0
// Shares [limits] flows among the clients of each peer and of this site: by need, but each has a guaranteed
// part. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace longhaul::flows {

// Half of all flows is reserved in equal parts; the other half goes to the sharers that need it. A sharer is
// identified by its name.
class PeerShares {
 public:
  void add(const std::string& sharer) { ++flows_[sharer]; }
  void remove(const std::string& sharer);

  // Whether one more flow fits, of `most` in total, if each of `sharers` has a part, including those without
  // flows.
  bool has_room(const std::string& sharer, std::uint32_t most, std::size_t sharers) const;

 private:
  std::map<std::string, std::uint32_t> flows_;  // no zero counts
};

}  // namespace longhaul::flows
