// SPDX-License-Identifier: Apache-2.0
// How [limits] flows is shared among the peers' clients and this site's own: by need, but each keeps a
// guaranteed part. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace longhaul::flows {

// One half of all flows is reserved, in equal parts; the other half goes to those that need it. Sharers are
// named.
class PeerShares {
 public:
  void add(const std::string& sharer) { ++flows_[sharer]; }
  void remove(const std::string& sharer);

  // Whether one more fits, of `most` in total, if `sharers` have a part each: those without flows have
  // theirs, too.
  bool has_room(const std::string& sharer, std::uint32_t most, std::size_t sharers) const;

 private:
  std::map<std::string, std::uint32_t> flows_;  // without zeros
};

}  // namespace longhaul::flows
