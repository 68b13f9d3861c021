// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <string>

#include "proxy/link/types.h"

std::string name(const boost::asio::ip::address& address) { return address.to_string(); }
longhaul::link::TimePoint deadline(longhaul::link::TimePoint now) { return now + std::chrono::seconds(1); }
