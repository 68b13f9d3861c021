// SPDX-License-Identifier: Apache-2.0
// Records which of a client's streams are closed, as far as a server needs to know: HEADERS on them end the
// connection (RFC 9113, sections 5.1 and 5.1.1). The library ignores such HEADERS, because it does not
// distinguish them from trailers that were in transit when the server reset the stream. Streams that this
// side has reset are not recorded.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

namespace longhaul::http::h2 {

class StreamHistory {
 public:
  using Stream = std::int32_t;
  enum class Fault : std::uint8_t { ended, never_used };
  // The latest of each kind are stored.
  static constexpr std::size_t kMostEnded = 128, kMostGaps = 16;

  // Both sides have ended the stream, or the client has reset it.
  void on_ended(Stream stream) { add(ended_, stream, kMostEnded); }

  // HEADERS on a stream that is not open: either opens it, or returns why it must not be used.
  std::optional<Fault> on_headers(Stream stream) {
    if (stream > last_) {
      if (stream - 2 > last_) add(gaps_, {last_ + 2, stream - 2}, kMostGaps);
      last_ = stream;
      return std::nullopt;
    }
    if (std::ranges::find(ended_, stream) != ended_.end()) return Fault::ended;
    const bool is_unused = std::ranges::any_of(gaps_, [&](const Gap& gap) { return gap.first <= stream && stream <= gap.last; });
    return is_unused ? std::optional(Fault::never_used) : std::nullopt;
  }

 private:
  struct Gap {
    Stream first, last;
  };
  template <typename T>
  static void add(std::deque<T>& all, T one, std::size_t most) {
    if (all.size() == most) all.pop_front();
    all.push_back(one);
  }

  Stream last_ = -1;
  std::deque<Stream> ended_;
  std::deque<Gap> gaps_;  // numbers that the client skipped, which no stream can use any more
};

}  // namespace longhaul::http::h2
