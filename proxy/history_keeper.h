// SPDX-License-Identifier: Apache-2.0
// Takes a sample of the traffic each second, and stores the history in a file, so that it survives restarts.
// control/history.h defines the data.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>

#include <functional>

#include "proxy/control/history.h"
#include "proxy/flows/byte_walk.h"

namespace longhaul {

class HistoryKeeper {
 public:
  // Reads the file; an unreadable or damaged file is logged, and the history starts empty. The table outlives
  // this object, and is used on the event loop `io`.
  HistoryKeeper(boost::asio::io_context& io, std::filesystem::path file, const flows::FlowTable& table);

  const control::History& history() const { return history_; }
  // Called each second with the bytes of all flows so far.
  std::function<void(const flows::FlowBytes&)> on_sample;
  void begin();
  // Returns when the file is up to date.
  void stop();

 private:
  void wait();
  void walk();
  void sample();
  void write();
  void written(const boost::system::error_code& error);

  boost::asio::io_context& io_;
  std::filesystem::path file_;
  const flows::FlowTable& table_;
  flows::ByteWalk walk_;
  control::History history_;
  flows::FlowBytes so_far_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point write_at_;
  boost::asio::thread_pool writer_{1};  // flows must not wait for the disk
  bool writing_ = false, complained_ = false, stopped_ = false;
};

}  // namespace longhaul
