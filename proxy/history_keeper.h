// SPDX-License-Identifier: Apache-2.0
// Takes a sample of the traffic each second, and stores the history in a file, so that it survives restarts.
// control/history.h defines what is kept.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <functional>

#include "proxy/control/history.h"

namespace longhaul {

class HistoryKeeper {
 public:
  struct Now {
    flows::FlowBytes bytes;  // since the start of the daemon
    std::uint64_t flows = 0;
  };
  // Reads the file; an unreadable or damaged one is logged, and the history begins empty. `collect` is called
  // on the loop from begin() to stop().
  HistoryKeeper(boost::asio::io_context& io, std::filesystem::path file, std::function<Now()> collect);

  const control::History& history() const { return history_; }
  void begin();
  // Returns when the file is up to date.
  void stop();

 private:
  void wait();
  void sample();
  void write();
  void written(const boost::system::error_code& error);

  boost::asio::io_context& io_;
  std::filesystem::path file_;
  std::function<Now()> collect_;
  control::History history_;
  flows::FlowBytes so_far_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point write_at_;
  boost::asio::thread_pool writer_{1};  // flows must not wait for the disk
  bool writing_ = false, complained_ = false;
};

}  // namespace longhaul
