// SPDX-License-Identifier: Apache-2.0
#include "proxy/journal_keeper.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "proxy/log/log.h"
#include "proxy/process/private_file.h"

namespace longhaul {

namespace asio = boost::asio;
using modules::Journal;

namespace {

constexpr std::chrono::seconds kRetryAfter{1};

}  // namespace

JournalKeeper::JournalKeeper(asio::io_context& io, const std::filesystem::path& folder,
                             const modules::StateFile& what, Journal& journal)
    : io_(io), what_(what), file_(folder / what.name), journal_(journal), retry_(io) {
  const auto read = process::read_private_file(file_, what_.most_bytes + 1);
  const bool is_new = !read && read.error() == boost::system::errc::no_such_file_or_directory;
  const bool fits = read && read->text.size() <= what_.most_bytes;
  if (!is_new && !(fits && journal_.restore(read->text)))
    log::error(what_.event, {{"file", file_.string()},
                             {"reason", read ? "damaged, or written by another version"
                                             : process::reason_of(read.error())},
                             {"effect", what_.not_read}});
  journal_.on_new([this] { changed(); });
  changed();  // drops old entries from the file, and detects a disk that cannot be written
}

JournalKeeper::~JournalKeeper() { journal_.on_new({}); }

void JournalKeeper::changed() {
  if (std::exchange(is_behind_, true) || writing_ || stopped_) return;
  asio::post(io_, [this] { write(); });  // once for everything new in this turn of the event loop
}

boost::system::error_code JournalKeeper::put(const std::filesystem::path& file, const Journal::Batch& batch) {
  const auto durable = batch.durable ? process::Durable::yes : process::Durable::no;
  const auto done = batch.place == Journal::Batch::Place::instead
                        ? process::replace_private_file(file, batch.text, durable)
                        : process::append_private_file(file, batch.text, durable);
  return done ? boost::system::error_code{} : done.error();
}

void JournalKeeper::write() {
  if (writing_ || stopped_ || !is_behind_) return;
  is_behind_ = false;
  writing_ = true;
  asio::post(writer_, [this, batch = journal_.take()] {
    const auto error = put(file_, batch);
    asio::post(io_, [this, error] {
      if (stopped_) return;
      written(error);
      if (!error) return write_on();
      // Do not retry all the time on a failing disk.
      retry_.expires_after(kRetryAfter);
      retry_.async_wait([this](const boost::system::error_code& cut) {
        if (!cut) write_on();
      });
    });
  });
}

void JournalKeeper::write_on() {
  writing_ = false;
  write();
}

void JournalKeeper::written(const boost::system::error_code& error) {
  journal_.stored(!error);
  if (!error || std::exchange(complained_, true)) return;
  log::error(what_.event, {{"file", file_.string()},
                           {"reason", "cannot be written: " + process::reason_of(error)},
                           {"effect", what_.not_written}});
}

void JournalKeeper::stop() {
  if (std::exchange(stopped_, true)) return;
  retry_.cancel();
  writer_.join();
  if (is_behind_) (void)put(file_, journal_.take());
}

}  // namespace longhaul
