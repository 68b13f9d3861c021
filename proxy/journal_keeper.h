// SPDX-License-Identifier: Apache-2.0
// The file of a module's journal: read at the start, then appended to by a thread, one batch and at most one
// sync at a time. The module defines its content (proxy/modules/journal.h).
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>

#include "proxy/modules/journal.h"
#include "proxy/modules/state.h"

namespace longhaul {

class JournalKeeper {
 public:
  // Reads the file. An unreadable or damaged file is logged and replaced. The journal outlives this object.
  JournalKeeper(boost::asio::io_context& io, const std::filesystem::path& folder,
                const modules::StateFile& what, modules::Journal& journal);
  ~JournalKeeper();
  JournalKeeper(const JournalKeeper&) = delete;
  JournalKeeper& operator=(const JournalKeeper&) = delete;

  // Returns when everything new is in the file. Nothing is written afterwards.
  void stop();

 private:
  void changed();
  void write();
  void write_on();
  void written(const boost::system::error_code& error);
  static boost::system::error_code put(const std::filesystem::path& file,
                                       const modules::Journal::Batch& batch);

  boost::asio::io_context& io_;
  const modules::StateFile what_;
  const std::filesystem::path file_;
  modules::Journal& journal_;
  boost::asio::thread_pool writer_{1};  // flows must not wait for the disk
  boost::asio::steady_timer retry_;
  bool is_behind_ = false;  // the journal has something to take
  bool writing_ = false, stopped_ = false, complained_ = false;
};

}  // namespace longhaul
