// SPDX-License-Identifier: Apache-2.0
// What one flow does to a file, and which of the others between the same addresses take part.
#include "proxy/modules/promises/live_flows.h"

#include <catch2/catch.hpp>
#include <vector>

namespace longhaul::promises {
namespace {

using namespace std::chrono_literals;

modules::Ends flow_ends(unsigned client, std::uint16_t port = 445) {
  return {.client = {std::byte(client)}, .server = {std::byte(1)}, .server_port = port};
}
LostFile promised_file(std::u16string path, unsigned client = 1, std::uint16_t port = 445) {
  return {.ends = flow_ends(client, port), .share = u"SHARE", .path = std::move(path), .spelled = {}};
}

// A flow that has promised writes of one file.
struct RecordedLedger final : LiveLedger {
  explicit RecordedLedger(LostFile of = promised_file(u"A"), Unfinished unfinished = {.bytes = 10})
      : promised(std::move(of)), left(unfinished) {}
  bool owes() const override { return left.bytes != 0; }
  void give_up(const LostFile& given, Cause cause, Reach) override {
    if (given == promised) left = {}, why = cause;
  }
  Unfinished finish(const LostFile& wanted, Reach) override {
    ++asked;
    return wanted == promised ? left : Unfinished{};
  }
  LostFile promised;
  Unfinished left;
  std::optional<Cause> why;
  int asked = 0;
};

struct Names final : OpenNames {
  void moved(const LostFile& from, const LostFile& to) override {
    seen.push_back(from.path + u">" + to.path);
  }
  std::vector<std::u16string> seen;
};

}  // namespace

TEST_CASE("live flows: a client may be promised something while a flow of its own is there, on either port") {
  LiveFlows flows;
  RecordedLedger one, two;
  CHECK_FALSE(flows.may_promise(flow_ends(1)));
  flows.enter(flow_ends(1, 445), &one), flows.enter(flow_ends(1, 139), &two);
  CHECK(flows.may_promise(flow_ends(1, 139)));
  CHECK_FALSE(flows.may_promise(flow_ends(2)));
  flows.leave(flow_ends(1), &one);
  CHECK(flows.may_promise(flow_ends(1)));
  flows.leave(flow_ends(1), &one);  // once more: the other one stays
  CHECK(flows.may_promise(flow_ends(1)));
  flows.leave(flow_ends(1), &two);
  CHECK_FALSE(flows.may_promise(flow_ends(1)));
}

TEST_CASE("live flows: an end gives up the promises of its file in all other flows of the client") {
  LiveFlows flows;
  RecordedLedger own, other, of_other_file(promised_file(u"B")), of_other_client(promised_file(u"A", 2)), idle(promised_file(u"A"), {});
  for (RecordedLedger* each : {&own, &other, &of_other_file, &idle}) flows.enter(flow_ends(1), each);
  flows.enter(flow_ends(2), &of_other_client);
  int calls = 0;
  flows.on_given_up([&] { ++calls; });
  CHECK(flows.owe(flow_ends(1)));
  flows.end(promised_file(u"A", 1, 139), Cause::flow_cut, &own);
  CHECK(own.owes());
  CHECK(other.why == Cause::flow_cut);
  CHECK(of_other_file.owes());
  CHECK(of_other_client.owes());
  CHECK_FALSE(idle.why);
  CHECK(calls == 1);
  flows.end(promised_file(u"C"));  // promised by none
  CHECK(calls == 1);
  flows.end(promised_file(u"A")), flows.end(promised_file(u"B"));
  CHECK_FALSE(flows.owe(flow_ends(1)));
  CHECK(flows.owe(flow_ends(2)));
  CHECK(own.why == Cause::link_lost);
  CHECK(calls == 3);
}

TEST_CASE("live flows: nobody has to be called when promises are given up") {
  LiveFlows flows;
  RecordedLedger one;
  flows.enter(flow_ends(1), &one);
  flows.end(promised_file(u"A"));
  CHECK_FALSE(one.owes());
}

TEST_CASE("live flows: what other flows have not finished of a file is added up, with the latest progress") {
  LiveFlows flows;
  const link::TimePoint start{};
  RecordedLedger own, early(promised_file(u"A"), {.bytes = 5, .moved_at = start + 1s}),
      late(promised_file(u"A"), {.bytes = 7, .moved_at = start + 2s}),
      elsewhere(promised_file(u"B"), {.bytes = 100, .moved_at = start + 9s});
  for (RecordedLedger* each : {&own, &late, &early, &elsewhere}) flows.enter(flow_ends(1), each);
  const Unfinished all = flows.finish_others(promised_file(u"A"), own);
  CHECK(all.bytes == 12);
  CHECK(all.moved_at == start + 2s);
  CHECK(own.asked == 0);
  CHECK(flows.finish_others(promised_file(u"A", 2), own).bytes == 0);
}

TEST_CASE("live flows: unread flows are counted") {
  LiveFlows flows;
  flows.enter_unguarded(flow_ends(1)), flows.enter_unguarded(flow_ends(1, 139));
  flows.leave_unguarded(flow_ends(1));
  CHECK(flows.has_unguarded(flow_ends(1)));
  CHECK_FALSE(flows.has_unguarded(flow_ends(2)));
  flows.leave_unguarded(flow_ends(1));
  CHECK_FALSE(flows.has_unguarded(flow_ends(1)));
  flows.leave_unguarded(flow_ends(1));  // there is none
  CHECK_FALSE(flows.has_unguarded(flow_ends(1)));
}

TEST_CASE("live flows: all connections of a client hear of a rename, until they end") {
  LiveFlows flows;
  Names one, two, other;
  flows.enter_names(flow_ends(1), &one), flows.enter_names(flow_ends(1, 139), &two),
      flows.enter_names(flow_ends(2), &other);
  flows.moved(promised_file(u"A"), promised_file(u"B"));
  CHECK(one.seen == std::vector<std::u16string>{u"A>B"});
  CHECK(two.seen == one.seen);
  CHECK(other.seen.empty());
  flows.leave_names(flow_ends(1), &one);
  flows.moved(promised_file(u"B"), promised_file(u"C"));
  CHECK(one.seen.size() == 1);
  CHECK(two.seen.size() == 2);
}

TEST_CASE("live flows: a client is renaming as long as one of its renames has no answer") {
  LiveFlows flows;
  auto first = flows.begin_rename(flow_ends(1)), second = flows.begin_rename(flow_ends(1, 139));
  CHECK(flows.is_renaming(flow_ends(1)));
  CHECK_FALSE(flows.is_renaming(flow_ends(2)));
  first.reset();
  CHECK(flows.is_renaming(flow_ends(1)));
  second.reset();
  CHECK_FALSE(flows.is_renaming(flow_ends(1)));
}

}  // namespace longhaul::promises
