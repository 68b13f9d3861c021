// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/server_redial.h"

#include <utility>

namespace longhaul::flows {
using Pump = LanSide::Pump;

void ServerRedial::for_module() {
  lan_.reset();
  lan_.up = lan_.down = Pump::held;
  const Dial dial = std::exchange(dial_, nullptr);
  if (renews_) return;  // the new connection serves this purpose, too
  lan_.end_trial();
  dial();
}

void ServerRedial::for_trial() {
  if (std::exchange(renews_, true)) return;
  lan_.drop_stale();
  dial_();
}

ServerRedial::For ServerRedial::dialled(bool module_asks) {
  return std::exchange(renews_, false) && !module_asks ? For::trial : For::module;
}

bool ServerRedial::use(boost::asio::ip::tcp::socket server, For whom) {
  if (whom == For::trial && server.is_open()) return lan_.replace(std::move(server));
  lan_.end_trial();
  if (!server.is_open()) return false;
  lan_.use(std::move(server));
  lan_.prepare();
  lan_.up = lan_.down = Pump::running;
  return true;
}

}  // namespace longhaul::flows
