// SPDX-License-Identifier: Apache-2.0
// Which ranges of one open file to fetch before the client asks for them: pure policy, fed with what the
// client read. Who fetches, what is valid and for how long is decided elsewhere. Nothing in here knows SMB.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "codecs/interval_set.h"

namespace longhaul::smb {

struct ReadAheadLimits {
  // What keeps the line full: set from rate and round trip (window_for). The window of an open grows up to
  // it.
  std::uint64_t window_bytes = 256 << 10;
  std::uint64_t first_bytes = 64 << 10;       // fetched with the open, and the window to begin with
  std::uint64_t whole_file_bytes = 64 << 10;  // files up to this size are fetched with the open
  std::uint32_t largest_read = 64 << 10;      // of one request
};

// 1.5 x rate x RTT, within 256 KiB and 16 MiB; first blocks and small files take at most what the line
// carries in a round trip, within 64 and 256 KiB. What is not known yet is 0.
ReadAheadLimits limits_for(double line_bytes_per_second, double rtt_seconds, std::uint32_t largest_read);

class ReadAhead {
 public:
  // The open was answered. `size` where the server told it.
  void opened(std::optional<std::uint64_t> size, const ReadAheadLimits& limits);

  // The client read this range, whoever answered.
  void on_read(std::uint64_t offset, std::uint64_t length);
  void on_end_of_file(std::uint64_t end);

  // What was fetched is void (a write, a break that leaves read caching): the pattern is kept, fetching
  // starts again with the client's next READ.
  void forget_fetched();

  // The next range to fetch, at most limits.largest_read; it counts as fetched from then on. None: enough is
  // ahead.
  std::optional<Interval> next(const ReadAheadLimits& limits);

  // What was planned or fetched ahead and not read yet.
  std::uint64_t ahead_bytes() const;

 private:
  struct Run {                        // one reader's way through the file
    std::uint64_t begin = 0;          // of its last READ
    std::uint64_t end = 0;            // behind its last READ
    std::uint64_t fetched_until = 0;  // sequential: all before this is fetched or read
    std::uint64_t stride = 0;         // 0: sequential; else from one READ's begin to the next's
    std::uint64_t length = 0;         // of each strided READ
    std::uint64_t window = 0;
    unsigned hits = 0;  // READs in this pattern, one after the other
    std::uint64_t last_used = 0;
  };
  Run* run_for(std::uint64_t offset, std::uint64_t length);

  std::vector<Run> runs_;  // a few readers interleaved; the least recently used is forgotten
  Interval at_open_;       // what opened() wants fetched and next() has not given yet
  std::optional<std::uint64_t> end_of_file_;
  std::uint64_t first_bytes_ = 0;
  std::uint64_t reads_ = 0;
};

}  // namespace longhaul::smb
