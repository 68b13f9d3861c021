// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/overdue_answer.h"

#include "packet_parts.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

// A path that is up, with a packet in flight since kStart.
struct AwaitedAnswer : PacketParts {
  OverdueAnswer overdue{flight, health};
  const Duration late_after = flight.sent().rtt().probe_timeout(SentPackets::kMaxAckDelay);
  const Duration quiet_after = SentPackets::kMaxAckDelay;

  AwaitedAnswer() {
    come_up();
    send();
    overdue.note(false, kStart);
  }
};

}  // namespace

TEST_CASE("an answer is late after a probe timeout, and the path silent after two and a pause") {
  AwaitedAnswer at;
  CHECK_FALSE(at.overdue.is_late(kStart + at.late_after - 1ms));
  CHECK(at.overdue.is_late(kStart + at.late_after));
  CHECK_FALSE(at.overdue.is_silent(kStart + 2 * at.late_after + 24ms));
  CHECK(at.overdue.is_silent(kStart + 2 * at.late_after + 25ms));
  CHECK_FALSE(at.overdue.is_doubtful(kStart + 1h));  // nothing asks for that
}

TEST_CASE("each answer is waited for anew, and packets that are sent meanwhile change nothing") {
  AwaitedAnswer at;
  at.overdue.note(false, kStart + at.late_after - 1ms);
  CHECK(at.overdue.is_late(kStart + at.late_after));
  at.overdue.note(true, kStart + at.late_after);
  CHECK_FALSE(at.overdue.is_late(kStart + at.late_after));
  CHECK(at.overdue.is_late(kStart + 2 * at.late_after));
  at.overdue.forget();
  CHECK_FALSE(at.overdue.is_late(kStart + 1h));
}

TEST_CASE("a path that is not up, or has nothing in flight but probes of its size, is never late") {
  AwaitedAnswer at;
  at.health.fail();
  CHECK_FALSE(at.overdue.is_late(kStart + 1h));
  CHECK_FALSE(at.overdue.is_silent(kStart + 1h));

  PacketParts parts;
  parts.come_up();
  OverdueAnswer overdue(parts.flight, parts.health);
  Buffer out;
  REQUIRE(parts.maker.make_probe(1400, PacketKind::mtu_probe, out, kStart));
  overdue.note(false, kStart);
  CHECK_FALSE(overdue.is_late(kStart + 1h));
}

TEST_CASE("a watched path is doubtful when its oldest packet is late and nothing is acknowledged") {
  AwaitedAnswer at;
  at.overdue.set_watched(true);
  CHECK_FALSE(at.overdue.is_doubtful(kStart + at.late_after - 1ms));
  CHECK(at.overdue.is_doubtful(kStart + at.late_after));
  // Others are acknowledged: the oldest alone is perhaps lost.
  at.overdue.note(true, kStart + at.late_after);
  CHECK_FALSE(at.overdue.is_doubtful(kStart + at.late_after + at.quiet_after - 1ms));
  CHECK(at.overdue.is_doubtful(kStart + at.late_after + at.quiet_after));
}

TEST_CASE("a watched path has a deadline for each of these, one after the other") {
  AwaitedAnswer at;
  CHECK_FALSE(at.overdue.next_timeout(kStart));
  at.overdue.set_watched(true);
  std::vector<Duration> deadlines;
  for (auto next = at.overdue.next_timeout(kStart); next; next = at.overdue.next_timeout(*next)) {
    deadlines.push_back(*next - kStart);
    REQUIRE(deadlines.size() < 10);
  }
  CHECK(deadlines == std::vector<Duration>{at.quiet_after, at.late_after, 2 * at.late_after + 25ms});
  at.health.fail();
  CHECK_FALSE(at.overdue.next_timeout(kStart));
}
