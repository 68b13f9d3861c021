// SPDX-License-Identifier: Apache-2.0
// READs of the client that are not sent to the server, because their missing data is fetched and pushed
// instead. `Read`: what the far half needs to send one after all.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "codecs/interval_set.h"

namespace longhaul::ahead {

template <class Read>
class Swallowed {
 public:
  // `sum`: the number of READs that all opens of a flow have swallowed; outlives this object.
  explicit Swallowed(std::size_t& sum) : sum_(sum) {}
  ~Swallowed() { sum_ -= reads_.size(); }
  Swallowed(const Swallowed&) = delete;
  Swallowed& operator=(const Swallowed&) = delete;

  void add(Read read, IntervalSet missing) {
    reads_.push_back({std::move(read), std::move(missing)});
    ++sum_;
  }
  // The range was pushed to the near half, which now serves READs that need nothing more.
  void pushed(Interval range, std::optional<std::uint64_t> end_of_file) {
    sum_ -= std::erase_if(reads_, [&](Waiting& read) {
      read.missing.remove(range);
      if (end_of_file) read.missing.remove({*end_of_file, ~0ull});
      return read.missing.empty();
    });
  }
  // Takes the READs that must be sent to the server after all: those for whose missing data the predicate is
  // true.
  template <class Predicate>
  std::vector<Read> take_if(Predicate is_sent) {
    std::vector<Read> taken;
    sum_ -= std::erase_if(reads_, [&](Waiting& read) {
      if (!is_sent(std::as_const(read.missing))) return false;
      taken.push_back(std::move(read.read));
      return true;
    });
    return taken;
  }
  std::vector<Read> take_all() {
    return take_if([](const IntervalSet&) { return true; });
  }
  std::size_t size() const { return reads_.size(); }

 private:
  struct Waiting {
    Read read;
    IntervalSet missing;
  };
  std::vector<Waiting> reads_;
  std::size_t& sum_;
};

}  // namespace longhaul::ahead
