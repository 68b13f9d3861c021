// SPDX-License-Identifier: Apache-2.0
// Tracks which outputs of a module or guard the client's host has acknowledged: responses after which the
// client may be gone before it has read them (promises/telling.h).
#pragma once
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace longhaul::flows {

// Bytes written to a connection that the other end's host has not acknowledged; the maximum if that is
// unknown.
inline std::size_t unacknowledged_bytes(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : ~std::size_t{0};
}

class Arrivals {
 public:
  // So far there were `awaited` such outputs; the last one ends before this offset of all output.
  void sent(std::uint64_t awaited, std::uint64_t end_offset) {
    if (awaited == last_) return;
    last_ = awaited;
    waiting_.emplace_back(awaited, end_offset);
  }
  bool any() const { return !waiting_.empty(); }
  // All output before this offset has arrived. Returns the number of awaited outputs that arrived, nullopt if
  // there are no new ones.
  std::optional<std::uint64_t> poll(std::uint64_t offset) {
    std::optional<std::uint64_t> arrived;
    for (; any() && waiting_.front().second <= offset; waiting_.pop_front()) arrived = waiting_.front().first;
    return arrived;
  }

 private:
  std::uint64_t last_ = 0;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> waiting_;
};

}  // namespace longhaul::flows
