// SPDX-License-Identifier: Apache-2.0
#include "proxy/lost_keeper.h"

#include <boost/asio/post.hpp>
#include <cstdio>
#include <utility>

#include "proxy/flows/ends.h"
#include "proxy/log/log.h"
#include "proxy/modules/smb/lost_book.h"
#include "proxy/process/private_file.h"

namespace longhaul {

namespace asio = boost::asio;
using smb::LostWrites;

namespace {

std::string status_text(std::uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

// "0-4096,8192-12288": each from the first byte to the one behind the last.
std::string ranges_text(const std::vector<Interval>& ranges) {
  std::string text;
  for (const Interval& range : ranges)
    text += (text.empty() ? "" : ",") + std::to_string(range.begin) + '-' + std::to_string(range.end);
  return text.empty() ? "unknown" : text;
}

}  // namespace

LostKeeper::LostKeeper(asio::io_context& io, std::filesystem::path file, std::shared_ptr<LostWrites> lost)
    : io_(io), file_(std::move(file)), lost_(std::move(lost)) {
  lost_->set_journal(this);
  const auto read = process::read_private_file(file_, smb::kMostLostBookBytes + 1);
  if (!read && read.error() == boost::system::errc::no_such_file_or_directory) return;
  auto records = read ? smb::parse_lost_book(read->text) : std::nullopt;
  if (records) {
    lost_->restore(std::move(*records));
    return;
  }
  log::error("lost_writes", {{"file", file_.string()},
                             {"reason", read ? "damaged, or written by another version" : process::reason_of(read.error())},
                             {"effect", "acknowledged writes that were lost before this start are not reported to clients"}});
}

LostKeeper::~LostKeeper() { lost_->set_journal(nullptr); }

void LostKeeper::lost(const LostWrites::File& file, const LostWrites::Loss& loss) {
  const bool certain = loss.near == 0;
  log::error("promise_lost", {{"file", smb::display_name(file)},
                              {"client", flows::address_text(file.ends.client)},
                              {"server", flows::address_text(file.ends.server)},
                              {"ranges", ranges_text(loss.ranges)},
                              {"cause", smb::kCauseNames[static_cast<std::size_t>(loss.cause)]},
                              {"status", status_text(static_cast<std::uint32_t>(loss.status))},
                              {"certain", certain}});
}

void LostKeeper::reported(const LostWrites::File& file, smb::Told how) {
  log::warn("promise_reported", {{"file", smb::display_name(file)},
                                 {"client", flows::address_text(file.ends.client)},
                                 {"how", smb::kToldNames[static_cast<std::size_t>(how)]}});
}

void LostKeeper::evicted(const LostWrites::File& file) {
  log::error("promise_forgotten", {{"file", smb::display_name(file)},
                                   {"client", flows::address_text(file.ends.client)},
                                   {"reason", "too many files have lost writes: this loss is never reported to the client"}});
}

// ---- the file

void LostKeeper::changed(const LostWrites&) {
  if (std::exchange(is_behind_, true) || writing_ || stopped_) return;
  asio::post(io_, [this] { write(); });  // once for all that changes in this turn of the loop
}

void LostKeeper::write() {
  if (writing_ || stopped_ || !is_behind_) return;
  is_behind_ = false;
  writing_ = true;
  asio::post(writer_, [this, text = smb::lost_book_text(lost_->records())] {
    const auto done = process::replace_private_file(file_, text, process::Durable::yes);
    const auto error = done ? boost::system::error_code{} : done.error();
    asio::post(io_, [this, error] {
      writing_ = false;
      written(error);
      write();
    });
  });
}

void LostKeeper::written(const boost::system::error_code& error) {
  if (!error || std::exchange(complained_, true)) return;
  log::error("lost_writes", {{"file", file_.string()},
                             {"reason", "cannot be written: " + process::reason_of(error)},
                             {"effect", "after a restart, lost acknowledged writes are not reported to clients"}});
}

void LostKeeper::stop() {
  if (std::exchange(stopped_, true)) return;
  writer_.join();
  if (!is_behind_) return;
  const auto done =
      process::replace_private_file(file_, smb::lost_book_text(lost_->records()), process::Durable::yes);
  written(done ? boost::system::error_code{} : done.error());
}

}  // namespace longhaul
