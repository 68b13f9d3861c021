// SPDX-License-Identifier: Apache-2.0
// What a script's thread and the agent's conversation share: what has been measured, the wish to stop, how it
// ended.
#pragma once
#include <atomic>
#include <boost/json/object.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/txn/windows.h"

namespace longhaul::txn {

struct Measured {
  std::vector<std::int64_t> response_ns;  // one for each transaction, in order
  std::uint64_t transactions = 0;
  std::uint64_t elapsed_ns = 0;  // first beginning to last end, so far
  Counts counts;
};

class Tally {
 public:
  void add(Duration response, Duration elapsed, const Counts& counts);
  void count(std::uint64_t transactions, const Counts& counts);  // where times are not taken
  // At most so many times, which are then no longer in here; the rest of the figures are sums since the
  // start.
  Measured take(std::size_t most);

 private:
  std::mutex mutex_;
  Measured held_;
};

struct Stopped {};  // thrown through a script that was told to stop

class Job {
 public:
  using Work = std::function<void(Tally&, const std::atomic<bool>& stop)>;
  ~Job();  // stops it and waits

  // Runs `work` on a thread of its own, once, and calls `ended` from there at its end.
  void start(Work work, std::function<void()> ended);
  void stop() { stop_ = true; }
  const std::atomic<bool>& stop_flag() const { return stop_; }
  bool has_ended() const { return has_ended_; }
  const std::string& trouble() const { return trouble_; }  // after its end; empty: none
  Tally& tally() { return tally_; }

 private:
  Tally tally_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> has_ended_ = false;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace longhaul::txn
