// SPDX-License-Identifier: Apache-2.0
// Stores measurements of the lines to peers across restarts: reads one file at the start, writes it after
// changes and at the end. link/udp/path_book.h defines its contents, and what an old measurement is worth.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <functional>

#include "proxy/link/udp/path_book.h"

namespace longhaul {

class PathKeeper {
 public:
  using PathBook = link::udp::PathBook;
  using Clock = std::function<PathBook::Time()>;

  // `collect` returns the current measurements without dates, and is called on the loop from begin() to
  // stop(). An unreadable file is treated as missing: its content only decides where rates begin.
  PathKeeper(boost::asio::io_context& io, std::filesystem::path file, std::function<PathBook()> collect,
             Clock clock = &PathKeeper::system_time);

  // The measurement from the file with which a path should start now (PathBook::recall).
  std::optional<link::udp::PathMemory> recall(const PathBook::Path& path) const;
  void begin();
  // Writes pending changes and stops.
  void stop();

  static PathBook::Time system_time();

 private:
  void wait();
  const PathBook& look();
  void save();

  std::filesystem::path file_;
  std::function<PathBook()> collect_;
  Clock clock_;
  boost::asio::steady_timer timer_;
  PathBook written_, latest_;
  bool complained_ = false;
};

}  // namespace longhaul
