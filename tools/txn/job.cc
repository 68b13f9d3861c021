// SPDX-License-Identifier: Apache-2.0
// The thread of one end of a pair.
#include "tools/txn/job.h"

#include <algorithm>

namespace longhaul::txn {

void Tally::add(Duration response, Duration elapsed, const Counts& counts) {
  const std::lock_guard lock{mutex_};
  held_.response_ns.push_back(std::chrono::nanoseconds(response).count());
  ++held_.transactions;
  held_.elapsed_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(elapsed).count());
  held_.counts = counts;
}

void Tally::count(std::uint64_t transactions, const Counts& counts) {
  const std::lock_guard lock{mutex_};
  held_.transactions = transactions;
  held_.counts = counts;
}

Measured Tally::take(std::size_t most) {
  const std::lock_guard lock{mutex_};
  Measured taken;
  taken.transactions = held_.transactions;
  taken.elapsed_ns = held_.elapsed_ns;
  taken.counts = held_.counts;
  if (held_.response_ns.size() <= most) {
    taken.response_ns.swap(held_.response_ns);
    return taken;
  }
  const auto end = held_.response_ns.begin() + static_cast<std::ptrdiff_t>(most);
  taken.response_ns.assign(held_.response_ns.begin(), end);
  held_.response_ns.erase(held_.response_ns.begin(), end);
  return taken;
}

void Job::start(Work work, std::function<void()> ended) {
  thread_ = std::thread([this, work = std::move(work), ended = std::move(ended)] {
    try {
      work(tally_, stop_);
    } catch (const Stopped&) {  // as it was told to
    } catch (const std::exception& error) {
      trouble_ = error.what();
    }
    has_ended_ = true;
    ended();
  });
}

Job::~Job() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace longhaul::txn
