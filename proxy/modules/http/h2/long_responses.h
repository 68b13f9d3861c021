// SPDX-License-Identifier: Apache-2.0
// Which responses share the connection. The library sends the streams of one urgency one after the other,
// which is good for the parts of a page, but a download would keep everything behind it waiting. So a
// response whose request says nothing of its priority (RFC 9218) precedes others only with its first bytes;
// the rest takes turns with theirs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace longhaul::http::h2 {

class LongResponses {
 public:
  static constexpr std::size_t kShortBytes = 64 * 1024;
  using Stream = std::int32_t;

  // Of a request without a priority.
  void add(Stream stream) { sent_.try_emplace(stream, 0); }
  void remove(Stream stream) { sent_.erase(stream); }
  void on_sent(Stream stream, std::size_t bytes) {
    const auto found = sent_.find(stream);
    if (found == sent_.end() || (found->second += bytes) < kShortBytes) return;
    sent_.erase(found);
    share_.push_back(stream);
  }
  // Those that share from now on, each once; it may have ended meanwhile.
  std::vector<Stream> poll() { return std::exchange(share_, {}); }

 private:
  std::map<Stream, std::size_t> sent_;  // of those that do not share yet
  std::vector<Stream> share_;
};

}  // namespace longhaul::http::h2
