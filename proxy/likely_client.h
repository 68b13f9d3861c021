// SPDX-License-Identifier: Apache-2.0
// A guess for `longhaul why` where the operator names a server alone. Pure.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/flows/tuple.h"
#include "proxy/net/interfaces.h"

namespace longhaul {

// An address that a client of this server could have, here or at the peer that has clients for it; none: not
// known. `own`: this host's interfaces.
std::optional<boost::asio::ip::address> likely_client(const config::Config& config,
                                                      const std::vector<net::Interface>& own,
                                                      const flows::Destination& server);

}  // namespace longhaul
