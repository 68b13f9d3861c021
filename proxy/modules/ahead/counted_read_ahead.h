// SPDX-License-Identifier: Apache-2.0
// The read-ahead policy of one open (read_ahead.h), whose unread bytes are counted in a sum over all opens of
// a flow.
#pragma once
#include "proxy/modules/ahead/read_ahead.h"

namespace longhaul::ahead {

class CountedReadAhead {
 public:
  // `sum` outlives this object.
  explicit CountedReadAhead(std::uint64_t& sum) : sum_(sum) {}
  ~CountedReadAhead() { sum_ -= counted_; }
  CountedReadAhead(const CountedReadAhead&) = delete;
  CountedReadAhead& operator=(const CountedReadAhead&) = delete;

  // As in ReadAhead.
  void opened(std::optional<std::uint64_t> size, const ReadAheadLimits& limits) {
    policy_.opened(size, limits), count();
  }
  void sized(std::uint64_t size) { policy_.sized(size), count(); }
  void on_read(std::uint64_t offset, std::uint64_t length, const ReadAheadLimits& limits) {
    policy_.on_read(offset, length, limits), count();
  }
  void missed(std::uint64_t offset, std::uint64_t length = 1) { policy_.missed(offset, length), count(); }
  void on_end_of_file(std::uint64_t end) { policy_.on_end_of_file(end), count(); }
  void forget_fetched() { policy_.forget_fetched(), count(); }
  std::optional<Interval> next(const ReadAheadLimits& limits) {
    const auto range = policy_.next(limits);
    count();
    return range;
  }

  std::optional<std::uint64_t> end_of_file() const { return policy_.end_of_file(); }
  std::uint64_t ahead_bytes() const { return counted_; }
  bool scattered() const { return policy_.scattered(); }

 private:
  void count() {
    sum_ -= counted_;
    counted_ = policy_.ahead_bytes();
    sum_ += counted_;
  }

  ReadAhead policy_;
  std::uint64_t& sum_;
  std::uint64_t counted_ = 0;
};

}  // namespace longhaul::ahead
