// SPDX-License-Identifier: Apache-2.0
#include "proxy/path_keeper.h"

#include <fstream>
#include <iterator>

#include "proxy/log/log.h"

namespace longhaul {

using link::udp::PathBook;
using namespace std::chrono_literals;

namespace {

// After kill -9 so much is forgotten at most.
constexpr auto kInterval = 10s;

std::string read_up_to(const std::filesystem::path& file, std::size_t most) {
  std::ifstream in(file, std::ios::binary);
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

PathKeeper::PathKeeper(boost::asio::io_context& io, std::filesystem::path file,
                       std::function<PathBook()> collect)
    : file_(std::move(file)), collect_(std::move(collect)), timer_(io) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file_, error)) return;
  if (auto book = PathBook::parse(read_up_to(file_, PathBook::kMostBytes + 1)))
    written_ = std::move(*book);
  else
    log::warn("paths", {{"file", file_.string()},
                        {"reason", "damaged, or of another version"},
                        {"effect", "lines are measured anew"}});
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

// Under another name first, so that a crash leaves the old file or the new one. Nothing waits for the device:
// what a power cut damages is not believed.
void PathKeeper::save(const PathBook& book) {
  const auto draft = file_.string() + ".new";
  std::error_code error;
  {
    std::ofstream out(draft, std::ios::binary | std::ios::trunc);
    out << book.text() << std::flush;
    if (!out) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(draft, file_, error);
  if (!error) {
    written_ = book;
    return;
  }
  if (std::exchange(complained_, true)) return;
  log::warn("paths", {{"file", file_.string()},
                      {"reason", "cannot be written: " + error.message()},
                      {"effect", "after a restart lines are measured anew"}});
}

}  // namespace longhaul
