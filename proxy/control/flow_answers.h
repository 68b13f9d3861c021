// SPDX-License-Identifier: Apache-2.0
// Responses about one flow: its fields, and why it is treated as it is, or would be.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <string_view>

#include "proxy/control/controlled.h"
#include "proxy/control/target.h"

namespace longhaul::control {

// `number`: as text.
Answer one_flow(const Controlled& daemon, std::string_view number);
// ?flow=NUMBER or ?tuple=CLIENT:PORT-SERVER:PORT. The target must live until this completes.
boost::asio::awaitable<Answer> why(Controlled& daemon, const Target& target);

}  // namespace longhaul::control
