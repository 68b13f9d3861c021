// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/read_ahead.h"

#include <algorithm>

namespace longhaul::ahead {
namespace {

constexpr std::size_t kMostRuns = 4;
constexpr std::uint64_t kLeastWindow = 256 << 10, kMostWindow = 16 << 20;
constexpr std::uint64_t kLeastFirst = 64 << 10, kMostFirst = 4 << 20, kMostWhole = 256 << 10;
// The time that a file may take on the line to be fetched completely for scattered READs.
constexpr double kWholeSeconds = 2;
// READs outside any run after which a file counts as read at random, like documents when they are opened.
constexpr unsigned kScatteredReads = 4;
// Archives, and documents in archive formats, have their directory at their end, which is read first.
constexpr std::uint64_t kTailBytes = 64 << 10;
// A run's window grows with every READ: 256 KiB, 1 MiB, 4 MiB, 16 MiB.
constexpr std::uint64_t kGrowth = 4;
constexpr std::uint64_t kMostStride = 64 << 20;
constexpr std::uint64_t kFileEnd = 1ull << 62;  // no file is that large

std::uint64_t clamped(double value, std::uint64_t least, std::uint64_t most) {
  if (!(value > static_cast<double>(least))) return least;
  return value < static_cast<double>(most) ? static_cast<std::uint64_t>(value) : most;
}

}  // namespace

ReadAheadLimits limits_for(double line_bytes_per_second, double rtt_seconds, std::uint32_t largest_read) {
  double line_holds = line_bytes_per_second * rtt_seconds;
  ReadAheadLimits limits;
  limits.window_bytes = clamped(1.5 * line_holds, kLeastWindow, kMostWindow);
  // Keeps the line busy until the client's second and third READ are reported, which takes a round trip and
  // the client's own time after the first blocks.
  limits.first_bytes = clamped(1.25 * line_holds, kLeastFirst, kMostFirst);
  limits.whole_file_bytes = clamped(line_holds, kLeastFirst, kMostWhole);
  limits.scattered_bytes = clamped(kWholeSeconds * line_bytes_per_second, 0, kMostWindow);
  limits.largest_read = std::max<std::uint32_t>(largest_read, 1);
  return limits;
}

void ReadAhead::opened(std::optional<std::uint64_t> size, const ReadAheadLimits& limits) {
  end_of_file_ = size;
  std::uint64_t first = limits.first_bytes;
  if (size) first = *size <= limits.whole_file_bytes ? *size : std::min(first, *size);
  want({0, first});
}

void ReadAhead::on_read(std::uint64_t offset, std::uint64_t length, const ReadAheadLimits& limits) {
  if (length == 0 || offset >= kFileEnd || length > kFileEnd - offset) return;
  ++reads_;
  Interval read{offset, offset + length};
  wanted_.remove(read);
  if (fetched_.intervals().size() >= kMostIntervals) fetched_ = {};
  // All of it counts as fetched then, so that nothing is fetched again.
  if (read_.intervals().size() >= kMostIntervals) read_ = fetched_;
  if (fetched_.empty()) read_ = {};
  fetched_.add(read);
  read_.add(read);

  Run* run = run_of(read);
  if (run) {
    run->last_used = reads_;
    ++run->reads;
    // Sequential: by the second READ. Strided: by the third.
    if (run->stride == 0 || run->reads > 2) {
      scattered_ = 0;
      run->window = run->believed ? std::min(run->window * kGrowth, kMostWindow) : kLeastWindow;
      run->believed = true;
      return;
    }
  } else {
    begin_run(read);
  }
  if (!end_of_file_) return;
  if (!run && *end_of_file_ > kTailBytes && read.end > *end_of_file_ - kTailBytes)
    want({*end_of_file_ - kTailBytes, *end_of_file_});
  if (++scattered_ < kScatteredReads || *end_of_file_ > limits.scattered_bytes) return;
  whole_wanted_ = true;
  want({0, *end_of_file_});
}

ReadAhead::Run* ReadAhead::run_of(Interval read) {
  auto moved = [&](Run& run) {
    run.begin = read.begin;
    run.end = read.end;
    return &run;
  };
  // Sequential: where the last READ ended, or within it (rounding), or slightly after it, because READs of
  // clients that pipeline may be reordered.
  for (Run& run : runs_) {
    std::uint64_t slack = std::max(read.size(), run.end - run.begin);
    if (run.stride == 0 && read.end > run.end && read.begin >= run.begin &&
        read.begin - run.begin <= 2 * slack)
      return moved(run);
  }
  // Strided: the same distance to the last one as between the two before, and the same length.
  for (Run& run : runs_)
    if (run.stride != 0 && read.begin - run.begin == run.stride && read.size() == run.length)
      return moved(run);
  // A run of one READ becomes strided by the second.
  for (Run& run : runs_) {
    if (run.reads != 1 || read.begin <= run.end || read.size() != run.end - run.begin) continue;
    if (read.begin - run.begin > kMostStride) continue;
    run.stride = read.begin - run.begin;
    run.length = read.size();
    run.believed = false;
    return moved(run);
  }
  return nullptr;
}

void ReadAhead::begin_run(Interval read) {
  Run run{.begin = read.begin, .end = read.end, .last_used = reads_};
  // A client that reads the start of a file will probably continue.
  if (read.begin == 0) {
    run.believed = true;
    run.window = kLeastWindow;
  }
  if (runs_.size() < kMostRuns) return runs_.push_back(run);
  *std::min_element(runs_.begin(), runs_.end(),
                    [](const Run& a, const Run& b) { return a.last_used < b.last_used; }) = run;
}

void ReadAhead::on_end_of_file(std::uint64_t end) {
  end_of_file_ = end;
  wanted_.remove({end, ~0ull});
}

void ReadAhead::forget_fetched() {
  wanted_ = {};
  fetched_ = {};
  read_ = {};
  end_of_file_.reset();
  for (Run& run : runs_) run.believed = false;
}

std::uint64_t ReadAhead::ahead_bytes() const {
  std::uint64_t bytes = 0;
  for (const Interval& i : fetched_.intervals()) bytes += i.size();
  for (const Interval& i : read_.intervals()) bytes -= i.size();  // a part of fetched_
  return bytes;
}

void ReadAhead::plan(const ReadAheadLimits& limits) {
  for (const Run& run : runs_) {
    if (!run.believed) continue;
    std::uint64_t window = std::min(run.window, limits.window_bytes);
    if (run.stride == 0) {
      want({run.end, run.end + window});
      continue;
    }
    std::uint64_t at = run.begin;
    for (std::uint64_t n = 0; n < kMostIntervals / 4 && (n + 1) * run.length <= window; ++n) {
      at += run.stride;
      want({at, at + run.length});
    }
  }
}

void ReadAhead::want(Interval range) {
  range.end = std::min(range.end, end_of_file_.value_or(kFileEnd));
  IntervalSet missing;
  missing.add(range);
  for (const Interval& have : fetched_.intervals()) missing.remove(have);
  for (const Interval& i : missing.intervals()) wanted_.add(i);
}

std::optional<Interval> ReadAhead::next(const ReadAheadLimits& limits) {
  plan(limits);
  // While enough is ahead, a range must be worth a request, because the window moves with every READ of the
  // client.
  std::uint64_t worth = 1;
  if (ahead_bytes() >= limits.window_bytes / 2)
    worth = std::min<std::uint64_t>(limits.largest_read, limits.window_bytes / 4);
  std::optional<Interval> range = first_wanted(worth);
  if (!range) return std::nullopt;
  range->end = std::min(range->end, range->begin + limits.largest_read);
  wanted_.remove(*range);
  fetched_.add(*range);
  return range;
}

// First the part that the latest reader reaches next, then others.
std::optional<Interval> ReadAhead::first_wanted(std::uint64_t worth) const {
  std::uint64_t reader = 0, last_used = 0;
  for (const Run& run : runs_)
    if (run.last_used >= last_used) reader = run.end, last_used = run.last_used;
  // The rest of the file, if its end is available already.
  std::uint64_t end = end_of_file_.value_or(kFileEnd);
  if (!fetched_.empty() && fetched_.intervals().back().end >= end) end = fetched_.intervals().back().begin;
  std::optional<Interval> elsewhere;
  for (const Interval& i : wanted_.intervals()) {
    Interval ahead{std::max(i.begin, reader), i.end};
    bool to_the_end = i.end >= end;
    if (ahead.begin < ahead.end && (ahead.size() >= worth || to_the_end)) return ahead;
    if (!elsewhere && (i.size() >= worth || to_the_end)) elsewhere = i;
  }
  return elsewhere;
}

}  // namespace longhaul::ahead
