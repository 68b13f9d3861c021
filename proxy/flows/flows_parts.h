// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the sources of Flows, and by them alone.
#pragma once
#include <optional>

#include "proxy/flows/flows.h"
#include "proxy/log/log.h"

namespace longhaul::flows {

inline std::optional<boost::asio::ip::address> address_of(const Destination& destination) {
  return destination.host.empty() ? std::optional(destination.address) : std::nullopt;
}

inline Reason reason_of(link::LinkState state) {
  switch (state) {
    case link::LinkState::never_up:
      return reasons::link_never_up;
    case link::LinkState::up:
      return reasons::optimised;
    case link::LinkState::silent:
      return reasons::link_silent;
    case link::LinkState::down:
      return reasons::link_down;
  }
  return reasons::link_down;
}

// Why a flow whose server the far side did not connect is not optimised.
inline Reason reason_of(ConnectOutcome outcome) {
  switch (outcome) {
    case ConnectOutcome::not_allowed:
      return reasons::peer_refused;
    case ConnectOutcome::client_not_allowed:
      return reasons::client_not_in_networks;
    default:
      return reasons::destination_refused;
  }
}

inline void log_end(const FlowRecord& record, std::string_view how) {
  log::debug("flow_end", {{"flow", record.id},
                          {"how", how},
                          {"lan_in", record.bytes.lan_in},
                          {"lan_out", record.bytes.lan_out},
                          {"wan_in", record.bytes.wan_in},
                          {"wan_out", record.bytes.wan_out}});
}

inline void reset(boost::asio::ip::tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(boost::asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

}  // namespace longhaul::flows
