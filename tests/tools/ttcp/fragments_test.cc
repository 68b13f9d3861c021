// SPDX-License-Identifier: Apache-2.0
#include "tools/ttcp/fragments.h"

#include <catch2/catch.hpp>

using namespace longhaul::ttcp;

TEST_CASE("fragments of both families are summed by the names of their counters") {
  const Fragments found = parse_fragments(
      "Ip: Forwarding ReasmReqds ReasmOKs ReasmFails FragCreates\nIp: 1 10 5 2 30\nIcmp: InMsgs\nIcmp: 99\n",
      "Ip6InReceives 7\nIp6ReasmReqds 100\nIp6ReasmFails 20\nIp6FragCreates 300\nUdp6FragCreates 5\n");
  CHECK(found.created == 330);
  CHECK(found.received == 110);
  CHECK(found.failed == 22);
}

TEST_CASE("counters that are missing or not numeric count as zero") {
  CHECK(parse_fragments("", "").created == 0);
  CHECK(parse_fragments("Ip: FragCreates\nIp: many\n", "Ip6FragCreates").created == 0);
  CHECK((Fragments{1, 1, 1} - Fragments{2, 0, 1}).created == 0);
}
