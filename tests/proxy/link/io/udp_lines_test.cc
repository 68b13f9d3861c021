// SPDX-License-Identifier: Apache-2.0
// Two lines to a peer, over real sockets, each through a middle box of its own.
#include "proxy/link/io/udp_lines.h"

#include "udp_ends.h"

namespace longhaul::link::udp {
namespace {

using namespace testing;

struct PairOnLines : Pair {
  explicit PairOnLines(config::PathPolicy policy) : second(io, listening->port()) {
    for (End* end : {&a, &b}) {
      end->policy = policy;
      end->lines = {{.name = "first", .rate_bits = kRate / 2}, {.name = "second", .rate_bits = kRate / 2}};
      end->paths.begin(end->session);
    }
    add("first", 1, *relay);
    add("second", 2, second);
    REQUIRE(until([&] { return works(a) && works(b); }));
  }
  static bool works(const End& end) { return end.paths.works("first") && end.paths.works("second"); }
  void add(const std::string& line, int keys, const Relay& through) {
    const auto config = [&](End& end, const UdpAddress& peer) {
      return UdpCarrierConfig{.side = end.side, .keys = keys_of(keys), .peer = peer, .new_carrier = [&end] {
                                return ++end.last;
                              }};
    };
    a.paths.add(line, *a.paths.dialling_endpoint(line, {}, false),
                config(a, {asio::ip::make_address("127.0.0.1"), through.port()}));
    b.paths.add(line, *listening, config(b, {}));
  }
  Relay second;
  simulation::FlowsOn<Pair> flows{*this};
};

struct NoOwner final : UdpPathOwner {
  void after_path_activity() override {}
  void on_path_breach(UdpPath&, const std::string&) override {}
};

TEST_CASE("a line is made when it is first asked for, and the one without a name is the first") {
  UdpLines lines;
  CHECK(lines.size() == 1);
  CHECK(lines.front().name().empty());
  UdpLine& second = lines.named("second");
  CHECK(&lines.named("second") == &second);
  CHECK(&lines[1] == &second);
  CHECK(&lines.named("") == &lines.front());
  CHECK(lines.size() == 2);
  CHECK(lines.in_use() == 0);
  CHECK_FALSE(lines.any_works());
  CHECK_FALSE(lines.holds(nullptr));
  CHECK_FALSE(lines.keys_worn_out());
  CHECK_FALSE(lines.drops_bursts());
  LinkStatus status;
  lines.fill(status, {}, {false, false});
  CHECK(status.udp.state == UdpState::none);
  CHECK(status.paths.empty());  // none is in use
}

TEST_CASE("a line with keys is in use, and is shown with what it does") {
  asio::io_context io;
  End end(io, Side::dialler, "peer");
  NoOwner owner;
  UdpLines lines;
  UdpLine& second = lines.named("second");
  const auto endpoint = second.dialling_endpoint(io, {}, false);
  REQUIRE(endpoint.has_value());
  second.begin(io, **endpoint,
               {.side = Side::dialler,
                .keys = keys_of(1),
                .peer = {asio::ip::make_address("127.0.0.1"), 9},
                .new_carrier = [&end] { return ++end.last; }},
               end.session, owner, nullptr);
  CHECK(lines.in_use() == 1);
  CHECK(lines.holds(second.newest()));
  CHECK_FALSE(lines.works("second"));  // no answer yet
  CHECK_FALSE(lines.any_works());
  LinkStatus status;
  lines.fill(status, {}, {false, false});
  CHECK(status.udp.state == UdpState::probing);  // the one that exists
  REQUIRE(status.paths.size() == 1);
  CHECK(status.paths[0].name == "second");
  CHECK(status.paths[0].role == PathRole::none);
  PathShares shares;
  shares.preferred = 1;
  shares.reason = "it is the only one";
  LinkStatus carrying;
  lines.fill(carrying, shares, {false, true});
  CHECK(carrying.paths.at(0).role == PathRole::carries);
  CHECK(std::string(carrying.paths.at(0).reason) == "it is the only one");
  LinkStatus helping;
  lines.fill(helping, {}, {false, true});
  CHECK(helping.paths.at(0).role == PathRole::helps);
  second.drop_all();
}

TEST_CASE("of several lines the session uses the first, and the next when that is not answered") {
  PairOnLines pair(config::PathPolicy::failover);
  REQUIRE(pair.until([&] { return status_of(pair.a).paths.size() == 2; }));
  pair.flows.start(2'000'000, 2'000'000);
  REQUIRE(pair.until([&] { return status_of(pair.a).paths[0].udp.bytes_sent > 500'000; }));
  // A pause of this process may look like a late path for a moment.
  REQUIRE(pair.until([&] { return status_of(pair.a).paths[0].role == PathRole::carries; }));
  CHECK(status_of(pair.a).paths[1].role == PathRole::standby);
  CHECK(status_of(pair.a).paths[1].udp.bytes_sent < status_of(pair.a).paths[0].udp.bytes_sent);
  pair.relay->closed = true;
  REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
  CHECK(pair.flows.all_right());
  const LinkStatus status = status_of(pair.a);
  CHECK(status.paths[0].role == PathRole::none);
  CHECK(status.paths[1].role == PathRole::carries);
  CHECK(std::string(status.paths[1].reason) == "no other path works");
  CHECK(pair.a.session.preferred() != kTcp);
  CHECK(status.udp.fallbacks == 0);
  pair.relay->closed = false;
  CHECK(pair.until([&] { return status_of(pair.a).paths[0].role == PathRole::carries; }));
}

TEST_CASE("with policy sum, bulk streams use all lines of the lowest cost") {
  PairOnLines pair(config::PathPolicy::sum);
  pair.flows.start(6'000'000, 0);
  REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
  CHECK(pair.flows.all_right());
  for (const PathStatus& path : status_of(pair.a).paths) CHECK(path.udp.bytes_sent > 1'000'000);
  pair.a.lines[1].cost = 2;
  const auto sent_by_costly_line = [&] {
    const std::uint64_t before = status_of(pair.a).paths[1].udp.bytes_sent;
    pair.flows.start(1'000'000, 0);
    REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
    return status_of(pair.a).paths[1].udp.bytes_sent - before;
  };
  // During a pause of this process the cheap line may look late, and the other one is used.
  bool is_spared = false;
  for (int tries = 0; tries < 20 && !is_spared; ++tries) is_spared = sent_by_costly_line() < 50'000;
  CHECK(is_spared);
}

TEST_CASE("flows that ask for failover stay on the first line of its order, although the policy is sum") {
  PairOnLines pair(config::PathPolicy::sum);
  OpenRequest request = simulation::FlowsOn<Pair>::simple_request();
  request.features.paths = config::PathUse::failover;
  const auto sent_by_second = [&] {
    const std::uint64_t before = status_of(pair.a).paths[1].udp.bytes_sent;
    pair.flows.start(1'000'000, 0, request);
    REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
    return status_of(pair.a).paths[1].udp.bytes_sent - before;
  };
  // During a pause of this process the first line may look late, as above.
  bool is_spared = false;
  for (int tries = 0; tries < 20 && !is_spared; ++tries) is_spared = sent_by_second() < 100'000;
  CHECK(is_spared);
  CHECK(status_of(pair.a).paths[0].role != PathRole::standby);
  CHECK(pair.flows.all_right());
}

TEST_CASE("with all lines blocked the session goes on over TCP") {
  PairOnLines pair(config::PathPolicy::sum);
  pair.flows.start(3'000'000, 0);
  pair.until([&] { return status_of(pair.a).udp.bytes_sent > 500'000; });
  pair.relay->closed = pair.second.closed = true;
  REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
  CHECK(pair.flows.all_right());
  CHECK(pair.a.session.preferred() == kTcp);
}

}  // namespace
}  // namespace longhaul::link::udp
