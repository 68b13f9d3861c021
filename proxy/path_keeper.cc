// SPDX-License-Identifier: Apache-2.0
#include "proxy/path_keeper.h"

#include <utility>

#include "proxy/log/log.h"
#include "proxy/process/private_file.h"

namespace longhaul {

using link::udp::PathBook;
using namespace std::chrono_literals;

namespace {

// At most this much is lost after kill -9.
constexpr auto kInterval = 10s;

}  // namespace

PathKeeper::PathKeeper(boost::asio::io_context& io, std::filesystem::path file,
                       std::function<PathBook()> collect)
    : file_(std::move(file)), collect_(std::move(collect)), timer_(io) {
  const auto read = process::read_private_file(file_, PathBook::kMostBytes + 1);
  if (!read && read.error() == boost::system::errc::no_such_file_or_directory) return;
  auto book = read ? PathBook::parse(read->text) : std::nullopt;
  if (book)
    written_ = std::move(*book);
  else
    log::warn("paths",
              {{"file", file_.string()},
               {"reason", read ? "damaged, or written by another version" : process::reason_of(read.error())},
               {"effect", "the rates of all paths are measured again"}});
}

void PathKeeper::begin() { wait(); }

void PathKeeper::stop() {
  timer_.cancel();
  if (const PathBook book = collect_(); !book.empty()) save(book);
}

void PathKeeper::wait() {
  timer_.expires_after(kInterval);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    if (const PathBook book = collect_(); !book.resembles(written_)) save(book);
    wait();
  });
}

// Not durable: damage by a power cut is detected.
void PathKeeper::save(const PathBook& book) {
  const auto replaced = process::replace_private_file(file_, book.text());
  if (replaced) {
    written_ = book;
    return;
  }
  if (std::exchange(complained_, true)) return;
  log::warn("paths", {{"file", file_.string()},
                      {"reason", "cannot be written: " + process::reason_of(replaced.error())},
                      {"effect", "after a restart, the rates of all paths are measured again"}});
}

}  // namespace longhaul
