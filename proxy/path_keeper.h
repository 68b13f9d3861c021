// SPDX-License-Identifier: Apache-2.0
// Stores measurements of the paths to peers across restarts: reads a file at the start, and writes it after
// changes and at the end. link/udp/path_book.h defines its contents.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <functional>

#include "proxy/link/udp/path_book.h"

namespace longhaul {

class PathKeeper {
 public:
  // `collect` returns the current measurements, and is called on the event loop from begin() to stop(). An
  // unreadable file is treated as missing: its content only sets initial rates.
  PathKeeper(boost::asio::io_context& io, std::filesystem::path file,
             std::function<link::udp::PathBook()> collect);

  // The content of the file at the start.
  const link::udp::PathBook& known() const { return written_; }
  void begin();
  // Writes pending changes and stops.
  void stop();

 private:
  void wait();
  void save(const link::udp::PathBook& book);

  std::filesystem::path file_;
  std::function<link::udp::PathBook()> collect_;
  boost::asio::steady_timer timer_;
  link::udp::PathBook written_;
  bool complained_ = false;
};

}  // namespace longhaul
