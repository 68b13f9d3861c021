// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_table.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "table_of_streams.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::testing;

namespace {

using Round = StreamTable::Round;

constexpr std::array kFive = {1_stream, 3_stream, 5_stream, 7_stream, 9_stream};

struct Table : TableOfStreams {
  std::multiset<StreamId> visit_all(Round round) {
    std::multiset<StreamId> visited;
    while (const auto visit = streams.next_visit())
      if (visit->is_for(round)) visited.insert(visit->stream.id());
    return visited;
  }
};

}  // namespace

TEST_CASE("a round visits every stream once") {
  Table table;
  CHECK_FALSE(table.streams.next_visit());
  for (const auto id : kFive) table.add(id);
  CHECK_FALSE(table.streams.next_visit());
  table.streams.begin_round(Round::memory);
  CHECK(table.streams.in_round(Round::memory));
  CHECK_FALSE(table.streams.in_round(Round::carriers));
  CHECK(table.visit_all(Round::memory) == std::multiset<StreamId>(kFive.begin(), kFive.end()));
  CHECK_FALSE(table.streams.in_any_round());
}

TEST_CASE("a round that begins again visits every stream once more, from where it was") {
  Table table;
  for (const auto id : kFive) table.add(id);
  table.streams.begin_round(Round::carriers);
  const StreamId first = table.streams.next_visit()->stream.id();
  table.streams.begin_round(Round::carriers);
  CHECK(table.streams.next_visit()->stream.id() != first);
  CHECK(table.visit_all(Round::carriers).size() == 4);
}

TEST_CASE("streams that stay are visited, whatever streams come and go during a round") {
  const auto seed = GENERATE(range(1u, 30u));
  std::mt19937 random(seed);
  Table table;
  std::set<StreamId> live;
  StreamId next{1};
  const auto add = [&] {
    table.add(next);
    live.insert(next);
    ++next;
  };
  for (int i = 0; i < 20; ++i) add();
  for (int run = 0; run < 20; ++run) {
    std::map<Round, std::set<StreamId>> missing;
    const auto begin = [&](Round round) {
      table.streams.begin_round(round);
      missing[round] = live;
    };
    begin(Round::carriers);
    while (table.streams.in_any_round()) {
      switch (random() % 8) {
        case 0:
          add();
          break;
        case 1:
        case 2: {
          if (live.size() < 3) break;
          auto gone = std::next(live.begin(), static_cast<long>(random() % live.size()));
          table.streams.erase(*gone);
          for (auto& [round, streams] : missing) streams.erase(*gone);
          live.erase(gone);
          break;
        }
        case 3:
          if (random() % 8 == 0) begin(Round::memory);
          break;
        default:
          if (const auto visit = table.streams.next_visit())
            for (auto& [round, streams] : missing)
              if (visit->is_for(round)) streams.erase(visit->stream.id());
      }
      REQUIRE(table.streams.size() == live.size());
    }
    for (const auto& [round, streams] : missing) REQUIRE(streams.empty());
    for (const StreamId id : live) REQUIRE(table.streams.find(id)->id() == id);
    REQUIRE_FALSE(table.streams.find(next));
  }
}
