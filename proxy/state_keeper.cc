// SPDX-License-Identifier: Apache-2.0
#include "proxy/state_keeper.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "proxy/log/log.h"
#include "proxy/process/private_file.h"

namespace longhaul {

namespace asio = boost::asio;

StateKeeper::StateKeeper(asio::io_context& io, const std::filesystem::path& folder,
                         const modules::StateFile& what, modules::State& state)
    : io_(io), what_(what), file_(folder / what.name), state_(state) {
  const auto read = process::read_private_file(file_, what_.most_bytes + 1);
  const bool is_new = !read && read.error() == boost::system::errc::no_such_file_or_directory;
  if (!is_new && !(read && state_.restore(read->text)))
    log::error(what_.event, {{"file", file_.string()},
                             {"reason", read ? "damaged, or written by another version"
                                             : process::reason_of(read.error())},
                             {"effect", what_.not_read}});
  state_.on_change([this] { changed(); });
}

StateKeeper::~StateKeeper() { state_.on_change({}); }

void StateKeeper::changed() {
  if (std::exchange(is_behind_, true) || writing_ || stopped_) return;
  asio::post(io_, [this] { write(); });  // once for all changes in this turn of the event loop
}

void StateKeeper::write() {
  if (writing_ || stopped_ || !is_behind_) return;
  is_behind_ = false;
  writing_ = true;
  asio::post(writer_, [this, text = state_.text()] {
    const auto done = process::replace_private_file(file_, text, process::Durable::yes);
    const auto error = done ? boost::system::error_code{} : done.error();
    asio::post(io_, [this, error] {
      writing_ = false;
      written(error);
      write();
    });
  });
}

void StateKeeper::written(const boost::system::error_code& error) {
  if (!error || std::exchange(complained_, true)) return;
  log::error(what_.event, {{"file", file_.string()},
                           {"reason", "cannot be written: " + process::reason_of(error)},
                           {"effect", what_.not_written}});
}

void StateKeeper::stop() {
  if (std::exchange(stopped_, true)) return;
  writer_.join();
  if (!is_behind_) return;
  const auto done = process::replace_private_file(file_, state_.text(), process::Durable::yes);
  written(done ? boost::system::error_code{} : done.error());
}

}  // namespace longhaul
