// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/steady_timer.hpp>

void wait(boost::asio::steady_timer& timer) { timer.wait(); }
