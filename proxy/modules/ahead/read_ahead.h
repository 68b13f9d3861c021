// SPDX-License-Identifier: Apache-2.0
// Decides which ranges of one open file to fetch before the client requests them: pure policy, based on the
// client's READs. The halves fetch the data and know how long it is valid.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "codecs/interval_set.h"
#include "proxy/link/types.h"

namespace longhaul::ahead {

struct ReadAheadLimits {
  std::uint64_t window_bytes = 256 << 10;     // how far ahead of a reader: enough to keep the line busy
  std::uint64_t first_bytes = 64 << 10;       // fetched with the open
  std::uint64_t whole_file_bytes = 64 << 10;  // files up to this size are fetched completely with the open
  std::uint64_t scattered_bytes = 0;          // and up to this size if they are read at random
  std::uint32_t largest_read = 64 << 10;      // of one request
};

// The window is 1.5 x rate x RTT, within 256 KiB and 16 MiB; first blocks are 1.25 x, within 64 KiB and 4
// MiB; small files 1 x, within 64 KiB and 256 KiB. A rate or round trip of 0 is not known yet.
ReadAheadLimits limits_for(double line_bytes_per_second, double rtt_seconds, std::uint32_t largest_read);
inline ReadAheadLimits limits_for(std::uint64_t line_bytes_per_second, link::Duration round_trip,
                                  std::uint32_t largest_read) {
  return limits_for(static_cast<double>(line_bytes_per_second),
                    std::chrono::duration<double>(round_trip).count(), largest_read);
}

class ReadAhead {
 public:
  // The open succeeded. `size`: if the server reported it.
  void opened(std::optional<std::uint64_t> size, const ReadAheadLimits& limits);
  // Sets the file's size, without a request for data.
  void sized(std::uint64_t size) { end_of_file_ = size; }

  // The client read this range, whichever side served it.
  void on_read(std::uint64_t offset, std::uint64_t length, const ReadAheadLimits& limits);
  // The near half lacks data that the client requested. If it was fetched before, it was evicted, and so was
  // the data after it.
  void missed(std::uint64_t offset, std::uint64_t length = 1) {
    if (!fetched_.overlaps({offset, offset + length})) return;
    fetched_.remove({offset, ~0ull});
    read_.remove({offset, ~0ull});
  }
  void on_end_of_file(std::uint64_t end);
  std::optional<std::uint64_t> end_of_file() const { return end_of_file_; }

  // Fetched data is void (a write, an oplock break that revokes read caching): the patterns are kept, but
  // fetching resumes only with the client's next READs.
  void forget_fetched();

  // The next range to fetch, at most limits.largest_read; it counts as fetched from then on. Returns nullopt
  // if enough is ahead.
  std::optional<Interval> next(const ReadAheadLimits& limits);

  // Bytes fetched and not read yet.
  std::uint64_t ahead_bytes() const;
  // Whether the whole file was fetched because it was read at random.
  bool scattered() const { return whole_wanted_; }

 private:
  struct Run {                // a sequence of READs by one reader
    std::uint64_t begin = 0;  // start of its last READ
    std::uint64_t end = 0;
    std::uint64_t stride = 0;  // 0: sequential; else the distance between the starts of READs
    std::uint64_t length = 0;  // of each strided READ
    std::uint64_t window = 0;
    unsigned reads = 1;
    bool believed = false;  // enough READs have this pattern to fetch ahead
    std::uint64_t last_used = 0;
  };
  Run* run_of(Interval read);
  void begin_run(Interval read);
  void plan(const ReadAheadLimits& limits);
  void want(Interval range);
  std::optional<Interval> first_wanted(std::uint64_t worth) const;

  static constexpr std::size_t kMostIntervals = 64;

  std::vector<Run> runs_;  // several interleaved readers; the least recently used is forgotten
  IntervalSet wanted_;     // to be fetched
  IntervalSet fetched_;    // returned by next(), or read
  IntervalSet read_;
  std::optional<std::uint64_t> end_of_file_;
  bool whole_wanted_ = false;
  unsigned scattered_ = 0;  // READs that fitted no run, since the last one that did
  std::uint64_t reads_ = 0;
};

}  // namespace longhaul::ahead
