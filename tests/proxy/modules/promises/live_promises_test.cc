// SPDX-License-Identifier: Apache-2.0
// What becomes of a flow's promises when it ends or is given up, and what the far half writes down of them.
#include "proxy/modules/promises/live_promises.h"

#include <catch2/catch.hpp>
#include <map>

#include "proxy/modules/promises/doubts.h"

namespace longhaul::promises {
namespace {

const LostWrites::Ends kEnds{.client = {std::byte{1}}, .server = {std::byte{2}}, .server_port = 445};
OpenKey key(std::uint64_t number) { return {.session = number}; }
LostWrites::File file(char16_t letter) { return {.ends = kEnds, .share = u"S", .path = {letter}}; }

struct Flow {
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  Ledger ledger;
  std::map<OpenKey, LostWrites::File> opens{{key(1), file(u'A')}, {key(2), file(u'B')}};
  int ended = 0;
  LivePromises live{lost, kEnds, ledger,
                    [this](const OpenKey& open) {
                      const auto found = opens.find(open);
                      return found == opens.end() ? std::nullopt : std::optional(found->second);
                    },
                    [this](Cause cause) {
                      live.lose(cause);
                      ++ended;
                    }};

  void promise(const OpenKey& open, MessageNumber number) {
    REQUIRE(ledger.promise(open, number, {.offset = number * 10, .length = 10}) == Ledger::Verdict::now);
  }
};

}  // namespace

TEST_CASE("what a flow owes when it ends is lost, with its ranges, and what was kept is not") {
  Flow flow;
  flow.promise(key(1), 1);
  flow.promise(key(2), 2);
  flow.ledger.kept(2, Ledger::Outcome::success, 10);
  flow.live.lose(Cause::link_lost);
  const auto records = flow.lost->records();
  REQUIRE(records.size() == 1);
  CHECK(records.front().file == file(u'A'));
  CHECK(records.front().loss.cause == Cause::link_lost);
  CHECK((records.front().loss.ranges == std::vector<Interval>{{10, 20}}));
  CHECK_FALSE(flow.live.owes());
}

TEST_CASE("a flow is given up for a file of which it owes something, and for no other") {
  Flow flow;
  flow.promise(key(1), 1);
  flow.lost->end_live(file(u'B'));
  CHECK(flow.ended == 0);
  flow.lost->end_live(file(u'A'));
  CHECK(flow.ended == 1);
  CHECK(flow.lost->take(file(u'A')));
}

TEST_CASE("a flow whose client opens the file elsewhere promises nothing more of it") {
  Flow flow, other;
  flow.promise(key(1), 1);
  flow.live.moved(link::TimePoint{} + std::chrono::seconds(3));
  const auto unfinished = flow.lost->finish_others(file(u'A'), other.live);
  CHECK(unfinished.bytes != 0);
  CHECK(unfinished.moved_at == link::TimePoint{} + std::chrono::seconds(3));
  CHECK(flow.ledger.promise(key(1), 2, {.offset = 0, .length = 10}) == Ledger::Verdict::refused);
}

TEST_CASE("an open that ends clean, with a reported loss, or with something owed") {
  Flow flow;
  CHECK(flow.live.closed(key(1), file(u'A')) == LivePromises::Closed::clean);
  flow.promise(key(1), 1);
  flow.ledger.kept(1, Ledger::Outcome::error, 0);
  CHECK(flow.ledger.reports_loss(key(1)));
  CHECK(flow.live.closed(key(1), file(u'A')) == LivePromises::Closed::settled);
  flow.promise(key(2), 2);
  CHECK(flow.live.closed(key(2), file(u'B')) == LivePromises::Closed::lost);
  CHECK(flow.lost->take(file(u'B')));
  CHECK_FALSE(flow.lost->take(file(u'A')));
}

TEST_CASE("a far half whose near half may have promised writes down files in doubt, once it can be told") {
  const auto lost = std::make_shared<LostWrites>();
  Doubts doubts(lost, kEnds);
  const std::vector files{file(u'A')};
  doubts.lose(Cause::near_vanished, files);
  CHECK_FALSE(doubts.any());  // the near half was never allowed to promise
  doubts.allowed({.early = true});
  doubts.allowed({});
  doubts.near_is({.near = 7});
  doubts.closed_failed(key(3), file(u'C'));
  doubts.closed_failed(key(4), file(u'D'));
  doubts.settled(key(4));
  doubts.lose(Cause::near_vanished, files);
  CHECK(lost->waiting() == 2);
  // The same near daemon is there again, and knows better.
  CHECK_FALSE(doubts.tells(file(u'A'), LostWrites::Use::writes));
  Doubts through_another(lost, kEnds);
  CHECK(through_another.tells(file(u'C'), LostWrites::Use::writes));
  through_another.client_goes_on();
  CHECK_FALSE(through_another.any());
}

TEST_CASE("an open is in doubt under the far half's own oplock, until it is settled") {
  struct Open {
    bool on_behalf = true, settled = false, failed_promise = false;
  };
  Doubts doubts(std::make_shared<LostWrites>(), kEnds);
  CHECK(doubts.is_in_doubt(Open{}));
  CHECK_FALSE(doubts.is_in_doubt(Open{.settled = true}));
  CHECK(doubts.is_in_doubt(Open{.settled = true, .failed_promise = true}));
  CHECK_FALSE(doubts.is_in_doubt(Open{.on_behalf = false}));
  doubts.allowed({.cached = true});
  CHECK(doubts.is_in_doubt(Open{.on_behalf = false}));
}

}  // namespace longhaul::promises
