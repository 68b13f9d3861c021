// SPDX-License-Identifier: Apache-2.0
// Which responses share the connection. The library sends the streams of one urgency one after the other,
// which is good for the parts of a page, but would make everything after a download wait for its end. So a
// response whose request has no priority (RFC 9218) is exclusive only for its first bytes, and shares the
// connection with other responses after them.
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
