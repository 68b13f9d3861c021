// SPDX-License-Identifier: Apache-2.0
#include "proxy/history_keeper.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "proxy/log/log.h"
#include "proxy/process/private_file.h"

namespace longhaul {

namespace asio = boost::asio;
using control::History;
using namespace std::chrono_literals;

namespace {

constexpr auto kSample = 1s;
// At most this much is lost after kill -9. More frequent writes would wear out a small flash disk.
constexpr auto kWrite = 5min;

std::uint64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::max(std::chrono::floor<std::chrono::seconds>(now), 0s).count());
}

// A flow that ended before the walk reached it is missing until the next walk, so a sum may be less than
// before.
std::uint64_t grown(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

HistoryKeeper::HistoryKeeper(asio::io_context& io, std::filesystem::path file, const flows::FlowTable& table)
    : io_(io), file_(std::move(file)), table_(table), timer_(io) {
  const auto read = process::read_private_file(file_, History::kMostBytes + 1);
  if (!read && read.error() == boost::system::errc::no_such_file_or_directory) return;
  auto history = read ? History::parse(read->text) : std::nullopt;
  if (history)
    history_ = std::move(*history);
  else
    log::warn("history",
              {{"file", file_.string()},
               {"reason", read ? "damaged, or written by another version" : process::reason_of(read.error())},
               {"effect", "the status page shows no traffic from before this start"}});
}

void HistoryKeeper::begin() {
  write_at_ = std::chrono::steady_clock::now() + kWrite;
  wait();
}

void HistoryKeeper::stop() {
  timer_.cancel();
  stopped_ = true;
  walk_.begin(table_);
  while (!walk_.turn(table_)) {
  }
  sample();
  writer_.join();
  const auto done = process::replace_private_file(file_, history_.text());
  written(done ? boost::system::error_code{} : done.error());
}

void HistoryKeeper::wait() {
  timer_.expires_after(kSample);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    walk_.begin(table_);
    walk();
  });
}

// Other work of the event loop is done between the turns.
void HistoryKeeper::walk() {
  if (stopped_) return;
  if (!walk_.turn(table_)) return asio::post(io_, [this] { walk(); });
  sample();
  if (std::chrono::steady_clock::now() >= write_at_) write();
  wait();
}

void HistoryKeeper::sample() {
  const flows::FlowBytes& now = walk_.sum();
  const flows::FlowBytes passed{grown(now.lan_in, so_far_.lan_in), grown(now.lan_out, so_far_.lan_out),
                                grown(now.wan_in, so_far_.wan_in), grown(now.wan_out, so_far_.wan_out)};
  so_far_ += passed;
  history_.add(unix_seconds(), {.bytes = passed, .most_flows = table_.live().size(), .samples = 1});
  if (on_sample) on_sample(so_far_);
}

void HistoryKeeper::write() {
  if (std::exchange(writing_, true)) return;
  write_at_ = std::chrono::steady_clock::now() + kWrite;
  asio::post(writer_, [this, text = history_.text()] {
    const auto done = process::replace_private_file(file_, text);
    const auto error = done ? boost::system::error_code{} : done.error();
    asio::post(io_, [this, error] {
      writing_ = false;
      written(error);
    });
  });
}

void HistoryKeeper::written(const boost::system::error_code& error) {
  if (!error || std::exchange(complained_, true)) return;
  log::warn("history", {{"file", file_.string()},
                        {"reason", "cannot be written: " + process::reason_of(error)},
                        {"effect", "after a restart, the status page shows no traffic from before"}});
}

}  // namespace longhaul
