// SPDX-License-Identifier: Apache-2.0
// What happens to the promises of a flow when it ends or is given up, and how its marks follow its opens.
#include "proxy/modules/promises/live_promises.h"

#include <catch2/catch.hpp>
#include <map>

#include "proxy/modules/promises/marking_host.h"
#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::promises {
namespace {

using test::named;

OpenKey open_key(std::uint64_t number) { return {.session = number}; }

struct PromisingFlow {
  explicit PromisingFlow(std::shared_ptr<LostWrites> of_daemon = std::make_shared<LostWrites>())
      : lost(std::move(of_daemon)) {}

  std::shared_ptr<LostWrites> lost;
  Ledger ledger;
  std::map<OpenKey, LostWrites::File> opens{{open_key(1), named(u"A")}, {open_key(2), named(u"B")}};
  int ended = 0;
  LivePromises live{lost, named(u"A").ends, ledger,
                    [this](const OpenKey& open) {
                      const auto found = opens.find(open);
                      return found == opens.end() ? std::nullopt : std::optional(found->second);
                    },
                    [this](Cause cause) {
                      live.lose(cause);
                      ++ended;
                    }};

  void promise(const OpenKey& open, MessageNumber number) {
    REQUIRE(ledger.promise(open, number, {.offset = number.number() * 10, .length = 10}) == Ledger::Verdict::now);
  }
};

}  // namespace

TEST_CASE("what a flow owes when it ends is lost, with its ranges, and what was kept is not") {
  const auto lost = std::make_shared<LostWrites>();
  {
    PromisingFlow flow(lost);
    flow.promise(open_key(1), 1_number);
    flow.promise(open_key(2), 2_number);
    flow.ledger.kept(2_number, Ledger::Outcome::success, 10);
    SECTION("by the link") {
      flow.live.lose(Cause::link_lost);
      CHECK_FALSE(flow.live.owes());
    }
    SECTION("by its end alone") {}
  }
  const auto records = lost->records();
  REQUIRE(records.size() == 1);
  CHECK(records.front().file == named(u"A"));
  CHECK((records.front().loss.ranges == std::vector<Interval>{{10, 20}}));
}

TEST_CASE("a flow is given up for a file of which it owes something, and for no other") {
  PromisingFlow flow;
  flow.promise(open_key(1), 1_number);
  flow.lost->live().end(named(u"B"));
  CHECK(flow.ended == 0);
  flow.lost->live().end(named(u"A"));
  CHECK(flow.ended == 1);
  CHECK(flow.lost->take(named(u"A")));
}

TEST_CASE("a flow whose client opens the file elsewhere promises nothing more for it") {
  PromisingFlow flow;
  PromisingFlow other(flow.lost);
  flow.promise(open_key(1), 1_number);
  const auto moved = link::TimePoint{} + std::chrono::seconds(3);
  flow.live.moved(moved);
  const auto unfinished = flow.lost->live().finish_others(named(u"A"), other.live);
  CHECK(unfinished.bytes != 0);
  CHECK(unfinished.moved_at == moved);
  CHECK(flow.ledger.promise(open_key(1), 2_number, {.offset = 0, .length = 10}) != Ledger::Verdict::now);
}

TEST_CASE("a folder that gets another name waits for what it contains, and one that is opened does not") {
  PromisingFlow flow, other(flow.lost);
  flow.opens[open_key(1)] = named(u"A\\B");
  flow.promise(open_key(1), 1_number);
  CHECK(flow.lost->live().finish_others(named(u"A"), other.live).bytes == 0);
  CHECK(flow.lost->live().finish_others(named(u"A\\"), other.live, LostWrites::Reach::below).bytes == 0);
  CHECK(flow.lost->live().finish_others(named(u"A"), other.live, LostWrites::Reach::below).bytes != 0);
  flow.lost->live().end(named(u"A"), Cause::server_gone, &other.live);
  CHECK(flow.ended == 0);
  flow.lost->live().end(named(u"A"), Cause::server_gone, &other.live, LostWrites::Reach::below);
  CHECK(flow.ended == 1);
}

TEST_CASE("an open that ends clean, with a reported loss, or with something owed") {
  PromisingFlow flow;
  CHECK(flow.live.closed(open_key(1), named(u"A")) == LivePromises::Closed::clean);
  flow.promise(open_key(1), 1_number);
  flow.ledger.kept(1_number, Ledger::Outcome::error, 0);
  CHECK(flow.ledger.reports_loss(open_key(1)));
  CHECK(flow.live.closed(open_key(1), named(u"A")) == LivePromises::Closed::settled);
  flow.promise(open_key(2), 2_number);
  CHECK(flow.live.closed(open_key(2), named(u"B")) == LivePromises::Closed::lost);
  CHECK(flow.lost->take(named(u"B")));
  CHECK_FALSE(flow.lost->take(named(u"A")));
}

TEST_CASE("an open is marked when both disks have it, and until it ends") {
  test::Host host(1);
  PromisingFlow flow(host.lost);
  CHECK(flow.live.is_marked(open_key(1)) == false);  // nobody has marked it
  int news = 0;
  flow.live.on_news([&] { ++news; });
  flow.live.mark(open_key(1), named(u"A"));
  CHECK(flow.live.is_marked(open_key(1)) == std::nullopt);
  host.write();
  CHECK(news == 1);
  CHECK(flow.live.is_marked(open_key(1)) == std::nullopt);
  flow.live.marked_at_twin({.open = open_key(1)});
  CHECK(flow.live.is_marked(open_key(1)) == true);

  SECTION("which leaves no mark") {
    CHECK(flow.live.closed(open_key(1), named(u"A")) == LivePromises::Closed::clean);
    CHECK(host.marks().size() == 0);
  }
  SECTION("and with a loss the mark stays until the client is told") {
    flow.promise(open_key(1), 1_number);
    CHECK(flow.live.closed(open_key(1), named(u"A")) == LivePromises::Closed::lost);
    flow.live.unmark(open_key(1));
    CHECK(host.marks().size() == 1);
    CHECK(host.lost->take(named(u"A")));
    CHECK(host.marks().size() == 0);
  }
}

}  // namespace longhaul::promises
