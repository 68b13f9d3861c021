// SPDX-License-Identifier: Apache-2.0
// Connects the server of a far flow again, because its module requires it (once), or because a connection
// that was made ahead has failed its trial (trial.h). One new connection serves both.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <functional>

#include "proxy/flows/lan_side.h"

namespace longhaul::flows {

class ServerRedial {
 public:
  // Dials the server; the result, or a closed socket, is passed to use().
  using Dial = std::function<void()>;
  // `lan` outlives this object.
  explicit ServerRedial(LanSide& lan) : lan_(lan) {}

  void allow(Dial dial) { dial_ = std::move(dial); }
  // True until a module has used it.
  bool is_allowed() const { return dial_ != nullptr; }
  // A new connection is being made because of a failed trial.
  bool renews() const { return renews_; }

  // The module requires it: everything sent on the old connection is forgotten.
  void for_module();
  // The trial has failed: the client's bytes are sent again.
  void for_trial();

  // What the new connection is for. With module_asks, the bytes kept by the trial are not sent again.
  enum class For : std::uint8_t { module, trial };
  For dialled(bool module_asks);
  // Returns false if there is no connection.
  bool use(boost::asio::ip::tcp::socket server, For whom);

 private:
  LanSide& lan_;
  Dial dial_;
  bool renews_ = false;
};

}  // namespace longhaul::flows
