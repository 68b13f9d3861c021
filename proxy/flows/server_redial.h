// SPDX-License-Identifier: Apache-2.0
// A far flow whose server is connected again: because its module asks for that, once, or because a connection
// that was made ahead has failed its trial (trial.h). One new connection serves for both.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <functional>

#include "proxy/flows/lan_side.h"

namespace longhaul::flows {

class ServerRedial {
 public:
  // Dials the server; the result, or a closed socket, is given to use().
  using Dial = std::function<void()>;
  // `lan` outlives this object.
  explicit ServerRedial(LanSide& lan) : lan_(lan) {}

  void allow(Dial dial) { dial_ = std::move(dial); }
  // Until a module has used it.
  bool is_allowed() const { return dial_ != nullptr; }
  // A new connection is on its way because of a failed trial.
  bool renews() const { return renews_; }

  // The module has asked: what was said on the old connection is gone with it.
  void for_module();
  // The trial has failed: what the client has said is said again.
  void for_trial();

  // For whom the connection that was dialled is. With module_asks, what the trial has kept is of no use.
  enum class For : std::uint8_t { module, trial };
  For dialled(bool module_asks);
  // False: there is no connection.
  bool use(boost::asio::ip::tcp::socket server, For whom);

 private:
  LanSide& lan_;
  Dial dial_;
  bool renews_ = false;
};

}  // namespace longhaul::flows
