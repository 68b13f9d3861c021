// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/loss_events.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace longhaul::promises {
namespace {

struct Noted final : LossJournal {
  void lost(const LostFile&, const Loss&) override { events.push_back("lost"); }
  void reported(const LostFile&, const Loss&, Told) override { events.push_back("reported"); }
  void ended(const LostFile&, const Loss&, Ended) override { events.push_back("ended"); }
  void evicted(const LostFile&) override { events.push_back("evicted"); }
  void changed() override { events.push_back("changed"); }
  std::vector<std::string> events;
};

std::size_t index(auto of) { return static_cast<std::size_t>(of); }

void one_of_each(LossEvents& events) {
  events.lost({}, {.cause = Cause::refused});
  events.lost({}, {.cause = Cause::refused, .near = 7});
  events.lost({}, {.cause = Cause::interrupted});
  events.reported({}, {}, Told::reset);
  events.ended({}, {}, Ended::replaced);
  events.evicted({});
  events.changed();
}

}  // namespace

TEST_CASE("losses are counted by their cause, apart from those that nobody who knows has reported") {
  LossEvents events;
  one_of_each(events);
  const LossEvents::Counters& counters = events.counters();
  CHECK(counters.lost[index(Cause::refused)] == 1);
  CHECK(counters.suspected[index(Cause::refused)] == 1);
  CHECK(counters.suspected[index(Cause::interrupted)] == 1);
  CHECK(counters.lost[index(Cause::interrupted)] == 0);
  CHECK(counters.reported[index(Told::reset)] == 1);
  CHECK(counters.reported[index(Told::late_error)] == 0);
  CHECK(counters.evicted == 1);
}

TEST_CASE("the journal hears every event while there is one, and what it restores is no news for it") {
  LossEvents events;
  Noted journal;
  int changes = 0;
  events.set_journal(&journal);
  events.on_change([&] { ++changes; });
  one_of_each(events);
  CHECK(journal.events ==
        std::vector<std::string>{"lost", "lost", "lost", "reported", "ended", "evicted", "changed"});
  CHECK(changes == 1);
  events.restored();
  CHECK(journal.events.size() == 7);
  CHECK(changes == 2);
  events.set_journal(nullptr);
  one_of_each(events);
  CHECK(journal.events.size() == 7);
  CHECK(changes == 3);
}

}  // namespace longhaul::promises
