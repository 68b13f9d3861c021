// SPDX-License-Identifier: Apache-2.0
// READs of the client that do not go to the server, because what the near half lacks of them is fetched and
// pushed instead. Read: what the far half needs to send one after all.
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
  // `sum`: all that a flow has swallowed; outlives this object.
  explicit Swallowed(std::size_t& sum) : sum_(sum) {}
  ~Swallowed() { sum_ -= reads_.size(); }
  Swallowed(const Swallowed&) = delete;
  Swallowed& operator=(const Swallowed&) = delete;

  void add(Read read, IntervalSet missing) {
    reads_.push_back({std::move(read), std::move(missing)});
    ++sum_;
  }
  // Pushed to the near half, which now answers READs that lack nothing more.
  void pushed(Interval range, std::optional<std::uint64_t> end_of_file) {
    sum_ -= std::erase_if(reads_, [&](Waiting& read) {
      read.missing.remove(range);
      if (end_of_file) read.missing.remove({*end_of_file, ~0ull});
      return read.missing.empty();
    });
  }
  // Those that are sent to the server after all: of which the predicate says so of what they lack.
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
