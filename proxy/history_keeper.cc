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

// Counts never decrease; a flow that is counted twice for a moment must not look like 2^64 bytes.
std::uint64_t grown(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

HistoryKeeper::HistoryKeeper(asio::io_context& io, std::filesystem::path file, std::function<Now()> collect)
    : io_(io), file_(std::move(file)), collect_(std::move(collect)), timer_(io) {
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
  sample();
  writer_.join();
  const auto done = process::replace_private_file(file_, history_.text());
  written(done ? boost::system::error_code{} : done.error());
}

void HistoryKeeper::wait() {
  timer_.expires_after(kSample);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    sample();
    if (std::chrono::steady_clock::now() >= write_at_) write();
    wait();
  });
}

void HistoryKeeper::sample() {
  const Now now = collect_();
  const flows::FlowBytes passed{
      grown(now.bytes.lan_in, so_far_.lan_in), grown(now.bytes.lan_out, so_far_.lan_out),
      grown(now.bytes.wan_in, so_far_.wan_in), grown(now.bytes.wan_out, so_far_.wan_out)};
  so_far_ = now.bytes;
  history_.add(unix_seconds(), {.bytes = passed, .most_flows = now.flows, .samples = 1});
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
