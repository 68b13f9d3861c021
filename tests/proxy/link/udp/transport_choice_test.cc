// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/transport_choice.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using longhaul::config::Transport;

TEST_CASE("UDP carries while it works, unless TCP is configured and there") {
  CHECK_FALSE(choose_transport({.transport = Transport::udp, .tcp_is_there = true}).udp);
  CHECK(choose_transport({.transport = Transport::udp, .tcp_is_there = true, .udp_works = true}).udp);
  CHECK(choose_transport({.tcp_is_there = true, .udp_works = true}).udp);
  CHECK_FALSE(choose_transport({.transport = Transport::tcp, .tcp_is_there = true, .udp_works = true}).udp);
  CHECK(choose_transport({.transport = Transport::tcp, .udp_works = true}).udp);
}

TEST_CASE("a short line is left to TCP where that is automatic, and not for a small difference") {
  const auto udp = [](Transport transport, bool sends, Duration rtt) {
    return choose_transport({.transport = transport,
                             .tcp_is_there = true,
                             .udp_works = true,
                             .udp_sends = sends,
                             .measured_line_rtt = rtt})
        .udp;
  };
  CHECK_FALSE(udp(Transport::automatic, false, 1900us));
  CHECK(udp(Transport::automatic, true, 1900us));
  CHECK_FALSE(udp(Transport::automatic, true, 1400us));
  CHECK(udp(Transport::automatic, false, 2ms));
  CHECK(udp(Transport::udp, false, 100us));
}
