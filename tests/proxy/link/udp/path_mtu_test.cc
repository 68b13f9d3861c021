// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_mtu.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

// A path that takes datagrams up to `takes`, with data of the current size on it all the time and a small
// packet now and then, a round trip at a time.
struct NarrowPath {
  explicit NarrowPath(std::size_t bytes, IpFamily family = IpFamily::v4, std::size_t ceiling = 65'535)
      : takes(bytes), mtu(family, ceiling) {}

  bool arrives(std::size_t size) { return up && size <= takes && (random() % 1000 >= loss_per_mille); }

  // What was sent at `now` is known at `now` + one round trip, in order of sending.
  void round_trip() {
    auto probe = mtu.probe_due(now);
    if (probe) {
      CHECK(*probe > mtu.current());
      mtu.on_probe_sent(*probe, now);
      CHECK_FALSE(mtu.probe_due(now));
      probes.push_back(*probe);
    }
    std::size_t size = mtu.current();
    bool probe_arrives = probe && arrives(*probe), heard = probe_arrives;
    std::vector<std::pair<std::size_t, bool>> packets(kPacketsPerTrip, {size, false});
    packets.emplace_back(100, false);
    for (auto& [bytes, arrived] : packets) heard = (arrived = arrives(bytes)) || heard;
    now += rtt;
    if (!heard) {  // nothing tells what was lost: first the timeouts pass
      mtu.on_timeout();
      mtu.on_timeout();
      if (probe) mtu.on_probe_lost(*probe, now);
      return;
    }
    if (probe_arrives) mtu.on_probe_acked(*probe, now);
    for (auto [bytes, arrived] : packets)
      if (arrived) {
        mtu.on_packet_acked(bytes);
      } else {
        mtu.on_packet_lost(bytes);
        ++(bytes > takes ? never_fits : lost);
      }
    if (probe && !probe_arrives) mtu.on_probe_lost(*probe, now);
  }
  int trips_until(std::size_t size, int limit = 1000) {
    int trips = 0;
    while (mtu.current() != size && trips < limit) round_trip(), ++trips;
    return trips;
  }
  void run_until_settled() {
    while (!mtu.next_timeout(now)) round_trip();
  }

  static constexpr int kPacketsPerTrip = 40;
  std::size_t takes;
  PathMtu mtu;
  bool up = true;
  unsigned loss_per_mille = 0;
  TimePoint now{1h};
  Duration rtt = 100ms;
  std::mt19937_64 random{7};
  std::vector<std::size_t> probes;
  std::uint64_t never_fits = 0, lost = 0;
};

}  // namespace

TEST_CASE("Ethernet's packet size is found in one round trip, for IPv4 and IPv6") {
  NarrowPath v4(1472), v6(1452, IpFamily::v6);
  CHECK(v4.mtu.current() == 1200);
  CHECK(v4.trips_until(1472) == 1);
  CHECK(v6.trips_until(1452) == 1);
}

TEST_CASE("jumbo frames are found in the next round trip, and nothing larger is probed") {
  NarrowPath v4(20'000), v6(20'000, IpFamily::v6);
  CHECK(v4.trips_until(8972) == 2);
  CHECK(v6.trips_until(8952) == 2);
  CHECK_FALSE(v4.mtu.probe_due(v4.now + 24h));
  CHECK_FALSE(v4.mtu.next_timeout(v4.now));
}

TEST_CASE("no packet larger than the interface's MTU is probed") {
  NarrowPath ethernet(1472, IpFamily::v4, 1472);
  CHECK(ethernet.trips_until(1472) == 1);
  CHECK_FALSE(ethernet.mtu.probe_due(ethernet.now + 24h));
  NarrowPath tunnel(1392, IpFamily::v4, 1392);
  CHECK(tunnel.trips_until(1392) == 1);
  NarrowPath tiny(1'100, IpFamily::v4, 1'100);
  CHECK(tiny.mtu.current() == PathMtu::kBase);
  CHECK_FALSE(tiny.mtu.probe_due(tiny.now));
}

TEST_CASE("any path MTU is found, to 16 bytes below Ethernet's, and data is never too large") {
  for (IpFamily family : {IpFamily::v4, IpFamily::v6})
    for (std::size_t takes = 1200; takes <= 1500; ++takes) {
      NarrowPath path(takes, family);
      path.run_until_settled();
      INFO("takes " << takes << " found " << path.mtu.current());
      std::size_t ethernet = family == IpFamily::v4 ? 1472 : 1452;
      REQUIRE(path.mtu.current() <= takes);
      REQUIRE(path.mtu.current() + 16 > std::min(takes, ethernet));
      REQUIRE(path.never_fits == 0);
      REQUIRE(path.mtu.black_holes() == 0);
    }
  // Sizes that tunnels and lines are made for are found exactly.
  for (std::size_t ip : {1280u, 1420u, 1492u, 4352u, 8896u}) {
    NarrowPath path(ip - 28);
    path.run_until_settled();
    CHECK(path.mtu.current() == ip - 28);
  }
}

TEST_CASE("a finished search restarts, at first soon, later every ten minutes") {
  NarrowPath path(1472);
  path.run_until_settled();
  std::vector<Duration> waits;
  for (int i = 0; i < 8; ++i) {
    auto at = path.mtu.next_timeout(path.now);
    REQUIRE(at);
    CHECK_FALSE(path.mtu.probe_due(*at - 1ns));
    waits.push_back(*at - path.now);
    path.now = *at;
    CHECK_FALSE(path.mtu.next_timeout(path.now));  // due now: no deadline that has passed
    REQUIRE(path.mtu.probe_due(path.now));
    path.run_until_settled();
    CHECK(path.mtu.current() == 1472);
  }
  CHECK(waits.front() == 30s);
  CHECK(waits.back() == 600s);
  // The path takes more in the end.
  path.takes = 9000;
  path.now = *path.mtu.next_timeout(path.now);
  CHECK(path.trips_until(8972) == 1);
}

TEST_CASE("random loss does not keep the search from ending, at least not for long") {
  for (unsigned loss : {10u, 50u, 100u, 200u})
    for (unsigned seed = 1; seed <= 50; ++seed) {
      NarrowPath path(1472);
      path.loss_per_mille = loss;
      path.random.seed(seed);
      TimePoint start = path.now;
      int at_full_size = 0, trips = 0;
      for (; path.now < start + 200s; ++trips, path.round_trip()) at_full_size += path.mtu.current() == 1472;
      INFO("loss " << loss << " seed " << seed << " black holes " << path.mtu.black_holes());
      REQUIRE(path.mtu.current() <= 1472);
      REQUIRE(at_full_size > trips * 8 / 10);
      REQUIRE(path.never_fits == 0);
    }
}

TEST_CASE("a path that starts to drop large packets is noticed after a round trip, and searched again") {
  NarrowPath path(1472);
  path.run_until_settled();
  path.takes = 1372;
  CHECK(path.trips_until(PathMtu::kBase) == 1);
  CHECK(path.mtu.black_holes() == 1);
  std::uint64_t dropped = path.never_fits;
  path.run_until_settled();
  CHECK(path.mtu.current() == 1372);
  CHECK(path.never_fits == dropped);  // no data beyond the packets that showed it
}

TEST_CASE("an unfounded suspicion is cleared after one round trip") {
  const std::size_t size = GENERATE(1300u, 1472u, 8972u);
  NarrowPath path(size);
  while (path.mtu.probe_due(path.now)) path.round_trip();
  REQUIRE(path.mtu.current() + 16 > size);
  std::size_t found = path.mtu.current();
  path.mtu.on_packet_acked(100);
  for (int i = 0; i < 6; ++i) {
    CHECK(path.mtu.current() == found);
    path.mtu.on_packet_lost(found);
  }
  CHECK(path.mtu.current() == PathMtu::kBase);
  CHECK(path.trips_until(found) == 1);
  if (size == 8972) return;
  CHECK(path.mtu.next_timeout(path.now));  // what was lost before is not tried again for it
}

TEST_CASE("large packets that were lost before a small one arrives are a black hole") {
  NarrowPath path(1472);
  path.run_until_settled();
  path.mtu.on_packet_acked(1472);
  for (int i = 0; i < 6; ++i) path.mtu.on_packet_lost(1472);
  CHECK(path.mtu.current() == 1472);
  path.mtu.on_packet_acked(100);
  CHECK(path.mtu.current() == PathMtu::kBase);
  CHECK(path.mtu.black_holes() == 1);
}

TEST_CASE("a path that was given up twice in a row begins at the base, and the old size is tried first") {
  NarrowPath path(1472);
  path.run_until_settled();
  path.mtu.on_failed();
  path.mtu.on_packet_acked(1472);
  path.mtu.on_failed();
  path.mtu.on_packet_acked(PathMtu::kBase);
  CHECK(path.mtu.current() == 1472);
  path.mtu.on_failed();
  CHECK(path.mtu.current() == PathMtu::kBase);
  CHECK(path.mtu.probe_due(path.now) == std::optional<std::size_t>(1472));
}

TEST_CASE("large packets lost alone, or between others that arrive, are not a black hole") {
  NarrowPath path(1472);
  path.run_until_settled();
  SECTION("nothing small arrives either") {
    path.mtu.on_packet_acked(1472);
    for (int i = 0; i < 100; ++i) path.mtu.on_packet_lost(1472);
  }
  SECTION("each sixth arrives") {
    for (int i = 0; i < 600; ++i) {
      path.mtu.on_packet_acked(100);
      if (i % 6 == 0) {
        path.mtu.on_packet_acked(1472);
      } else {
        path.mtu.on_packet_lost(1472);
      }
    }
  }
  SECTION("only small ones are lost") {
    for (int i = 0; i < 100; ++i) path.mtu.on_packet_lost(100);
  }
  CHECK(path.mtu.current() == 1472);
}

TEST_CASE(
    "an outage does not reduce the MTU: nothing is probed meanwhile, and the old size is used afterwards") {
  NarrowPath path(1472);
  path.run_until_settled();
  path.up = false;
  std::size_t probed = path.probes.size();
  for (int i = 0; i < 300; ++i) path.round_trip();
  CHECK(path.mtu.current() == PathMtu::kBase);
  CHECK(path.probes.size() == probed);
  path.up = true;
  path.round_trip();  // the base gets through, and is heard of
  CHECK(path.trips_until(1472) == 1);
}

TEST_CASE("a path that is silent from the start is not taken for a small MTU") {
  NarrowPath path(1472);
  path.up = false;
  for (int i = 0; i < 50; ++i) path.round_trip();
  path.up = true;
  path.round_trip();
  CHECK(path.trips_until(1472) == 1);
}

TEST_CASE("a lost probe counts against its size only if something was received since it was sent") {
  PathMtu mtu(IpFamily::v4);
  TimePoint now{1h};
  auto lose = [&](std::size_t size, bool heard) {
    REQUIRE(mtu.probe_due(now) == std::optional(size));
    mtu.on_probe_sent(size, now);
    if (heard) mtu.on_packet_acked(100);
    mtu.on_probe_lost(size, now);
  };
  for (int i = 0; i < 10; ++i) lose(1472, false);
  for (int i = 0; i < 2; ++i) lose(1472, true);
  lose(1472, false);
  lose(1472, true);
  REQUIRE(mtu.probe_due(now));
  CHECK(*mtu.probe_due(now) < 1472);
}

TEST_CASE("a size that the local stack refuses is not tried three times") {
  PathMtu mtu(IpFamily::v4);
  TimePoint now{1h};
  REQUIRE(mtu.probe_due(now) == std::optional<std::size_t>(1472));
  mtu.on_probe_sent(1472, now);
  mtu.on_probe_acked(1472, now);
  REQUIRE(mtu.probe_due(now) == std::optional<std::size_t>(8972));
  mtu.on_probe_sent(8972, now);
  mtu.on_too_large(8972, now);
  REQUIRE(mtu.probe_due(now).value_or(0) < 8972);
  CHECK(mtu.current() == 1472);
  // And what is in use, when the interface shrinks.
  mtu.on_too_large(1472, now);
  CHECK(mtu.current() == PathMtu::kBase);
  REQUIRE(mtu.probe_due(now).value_or(9999) < 1472);
}

TEST_CASE("another path is searched from the base, and late answers of the old path are ignored") {
  NarrowPath path(8972);
  path.trips_until(1472);
  auto probe = path.mtu.probe_due(path.now);
  REQUIRE(probe == std::optional<std::size_t>(8972));
  path.mtu.on_probe_sent(*probe, path.now);
  path.mtu.restart();
  CHECK(path.mtu.current() == PathMtu::kBase);
  path.mtu.on_probe_acked(8972, path.now);
  CHECK(path.mtu.current() == PathMtu::kBase);
  path.takes = 1452;
  path.run_until_settled();
  CHECK(path.mtu.current() == 1452);
}
