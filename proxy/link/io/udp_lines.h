// SPDX-License-Identifier: Apache-2.0
// The lines to one peer, by name: what is asked of all of them, or of any. udp_line.h has each, udp_paths.h
// chooses between them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/link/io/udp_line.h"

namespace longhaul::link::udp {

// What was measured on the line of that name; empty: the only line.
struct LineMemory {
  std::string name;
  PathMemory memory;
};

class UdpLines {
 public:
  // With the line without a name, which is the first.
  UdpLines() { named({}); }

  // Made when it is first asked for; none is removed.
  UdpLine& named(const std::string& name);
  std::size_t size() const { return lines_.size(); }
  UdpLine& operator[](std::size_t place) { return *lines_[place]; }
  const UdpLine& operator[](std::size_t place) const { return *lines_[place]; }
  UdpLine& front() { return *lines_.front(); }
  const UdpLine& front() const { return *lines_.front(); }
  auto begin() const { return lines_.begin(); }
  auto end() const { return lines_.end(); }

  std::size_t in_use() const;  // with paths
  // Packets on that line are acknowledged.
  bool works(const std::string& name) const;
  bool any_works() const;
  bool holds(const UdpPath* path) const;
  // Of the newest keys of any line.
  bool keys_worn_out() const;
  bool drops_bursts() const;
  std::optional<TimePoint> next_timeout(const UdpPath* sending) const;
  std::vector<LineMemory> memories() const;  // of those that were ever measured

  // `takes_part`: for each line, whether something of the session is sent there.
  void fill(LinkStatus& status, const PathShares& shares, const std::vector<bool>& takes_part) const;

 private:
  template <class Is>
  bool any_newest(Is is) const;

  std::vector<std::unique_ptr<UdpLine>> lines_;
};

}  // namespace longhaul::link::udp
