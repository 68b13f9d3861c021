// SPDX-License-Identifier: Apache-2.0
// The file of a module's state: read at the start, and written by a thread whenever the state has changed.
// The module defines its content (proxy/modules/state.h).
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>

#include "proxy/modules/state.h"

namespace longhaul {

class StateKeeper {
 public:
  // Reads the file. An unreadable or damaged file is logged and ignored. The state outlives this object.
  StateKeeper(boost::asio::io_context& io, const std::filesystem::path& folder,
              const modules::StateFile& what, modules::State& state);
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  // Returns when the file is up to date. Nothing is written afterwards.
  void stop();

 private:
  void changed();
  void write();
  void written(const boost::system::error_code& error);

  boost::asio::io_context& io_;
  const modules::StateFile what_;
  const std::filesystem::path file_;
  modules::State& state_;
  boost::asio::thread_pool writer_{1};  // flows must not wait for the disk
  bool is_behind_ = false;              // the file is out of date
  bool writing_ = false, stopped_ = false, complained_ = false;
};

}  // namespace longhaul
