// SPDX-License-Identifier: Apache-2.0
// When nothing may be promised to the client of a linked flow, and what it is told of lost promises.
#include "linked_bench.h"
#include "proxy/flows/ends.h"
#include "proxy/flows/linked_flow.h"
#include "proxy/modules/smb/loss_reports.h"
#include "proxy/modules/smb/reasons.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using modules::Probe;
using modules::Way;

namespace {

// With promises of a client to that server, of which some may be lost.
struct BenchWithLosses {
  explicit BenchWithLosses(std::uint64_t far_version) : bench(Reduces::no, far_version, &reports) {}
  modules::Ends ends() {
    const tcp::endpoint server = bench.acceptor.local_endpoint();
    return ends_of(server.address(), {.host = {}, .address = server.address(), .port = server.port()});
  }
  asio::awaitable<void> ended() {
    return bench.until([this] { return bench.sites.near->table.live().empty(); });
  }

  std::shared_ptr<promises::LostWrites> lost = std::make_shared<promises::LostWrites>();
  smb::LossReports reports = smb::loss_reports(lost);
  LinkedBench bench;
};

}  // namespace

TEST_CASE(
    "nothing is promised to the client of a linked flow without its module, and nothing is hidden from it") {
  BenchWithLosses with(2);  // the far side has another version
  run(with.bench.io, [](BenchWithLosses& w) -> asio::awaitable<void> {
    {
      SocketPair pair = co_await w.bench.connected();
      CHECK(w.bench.near_flow().reason == reasons::module_not_at_peer);
      CHECK(w.bench.near_flow().peer == "far");
      CHECK(w.lost->live().has_unguarded(w.ends()));
    }
    co_await w.ended();
    CHECK_FALSE(w.lost->live().has_unguarded(w.ends()));
    w.lost->add({.ends = w.ends(), .share = u"S", .path = u"F"}, {});
    {
      SocketPair pair = co_await w.bench.connected();
      CHECK(w.bench.near_flow().reason == smb::reasons::lost_writes);
      CHECK(w.bench.near_flow().peer.empty());
      CHECK(w.lost->has_records(w.ends()));
    }
    co_await w.ended();
    // Where the flow may not bypass the link resets tell, for a while.
    link::TimePoint now{};
    w.lost->set_clock([&] { return now; });
    w.bench.sites.near->config.intercept.fail = config::Fail::closed;
    tcp::socket client = co_await w.bench.sites.connect(w.bench.acceptor.local_endpoint());
    const std::string nothing = (co_await read_all(client)).text;
    CHECK(nothing.empty());
    CHECK(w.lost->has_records(w.ends()));
    co_await w.ended();
    now += promises::LostRecord::kResetsFor;
    CHECK_FALSE(w.lost->has_records(w.ends()));
    SocketPair pair = co_await w.bench.connected();
    CHECK(w.bench.near_flow().peer == "far");
  }(with));
}

TEST_CASE(
    "nothing is promised to a client from the moment that the module steps aside from one of its flows") {
  BenchWithLosses with(1);
  with.bench.halves.dress_near = [](Probe& probe) {
    probe.lan = [](Probe& self, Slice bytes) {
      self.say(modules::StepAside{Way::to_stream});
      self.say(modules::ToStream{std::move(bytes)});
    };
  };
  with.bench.halves.dress_far = [](Probe& probe) { probe.twin_aside = [](Probe&) {}; };
  run(with.bench.io, [](BenchWithLosses& w) -> asio::awaitable<void> {
    {
      SocketPair pair = co_await w.bench.connected();
      CHECK_FALSE(w.lost->live().has_unguarded(w.ends()));
      co_await write(pair.near, "?");
      co_await read_exactly(pair.far, 1);
      CHECK(w.lost->live().has_unguarded(w.ends()));
    }
    co_await w.ended();
    CHECK_FALSE(w.lost->live().has_unguarded(w.ends()));
  }(with));
}
