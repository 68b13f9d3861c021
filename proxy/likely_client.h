// SPDX-License-Identifier: Apache-2.0
// Guesses a client for `longhaul why` if the operator names only a server. Pure.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/flows/tuple.h"
#include "proxy/net/interfaces.h"

namespace longhaul {

// A plausible address of a client of this server, here or at the peer that has clients for it; nullopt if
// unknown. `own`: this host's interfaces.
std::optional<boost::asio::ip::address> likely_client(const config::Config& config,
                                                      const std::vector<net::Interface>& own,
                                                      const flows::Destination& server);

}  // namespace longhaul
