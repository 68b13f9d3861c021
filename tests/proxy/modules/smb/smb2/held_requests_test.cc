// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/held_requests.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {
namespace {

struct Waiting {
  FileGroupRef group(std::u16string name) { return files.group_of({.tree = 1, .path = std::move(name)}); }
  OrderScope of(const FileGroupRef& file) const { return {.kind = OrderScope::Kind::file, .file = file}; }
  void hold(std::uint64_t sequence, const OrderScope& scope) {
    held.hold({.message = request(Command::flush, sequence, flush_request_body({1, 2})),
               .scope = scope,
               .sequence = sequence});
  }
  void done(const FileGroupRef& file, std::uint64_t sequence) {
    promises.remove(file, sequence, std::nullopt);
    for (const Message& message : held.release(file, promises, *files.any()))
      released.push_back(message.header().message_id);
  }
  std::vector<MessageId> take() { return std::exchange(released, {}); }
  using Ids = std::vector<MessageId>;
  Files files;
  FileGroupRef a = group(u"A"), b = group(u"B");
  OrderScope everything;
  UnfinishedPromises promises;
  HeldRequests held;
  std::vector<MessageId> released;
};

}  // namespace

TEST_CASE("requests of one file are released in order, when its promises are done") {
  Waiting waiting;
  for (const std::uint64_t sequence : {1, 3}) waiting.promises.add(waiting.a, sequence);
  waiting.hold(2, waiting.of(waiting.a));
  CHECK(waiting.held.hold_up(waiting.of(waiting.a)));  // behind it
  CHECK_FALSE(waiting.held.hold_up(waiting.of(waiting.b)));
  waiting.hold(4, waiting.of(waiting.a));
  waiting.hold(5, waiting.of(waiting.a));
  CHECK(waiting.held.bytes() > 0);
  waiting.done(waiting.a, 1);
  CHECK(waiting.take() == Waiting::Ids{2_message});
  waiting.done(waiting.a, 3);
  CHECK(waiting.take() == Waiting::Ids{4_message, 5_message});
  CHECK(waiting.held.empty());
  CHECK(waiting.held.bytes() == 0);
  CHECK_FALSE(waiting.held.hold_up(waiting.of(waiting.a)));
}

TEST_CASE("a request that waits for everything is released after all before it, and delays all behind it") {
  Waiting waiting;
  waiting.promises.add(waiting.a, 1);
  waiting.promises.add(waiting.b, 2);
  waiting.hold(3, waiting.of(waiting.a));
  waiting.hold(4, waiting.everything);
  CHECK(waiting.held.hold_up(waiting.of(waiting.b)));
  waiting.hold(5, waiting.of(waiting.b));
  waiting.hold(6, waiting.everything);
  waiting.done(waiting.b, 2);
  CHECK(waiting.take().empty());
  waiting.done(waiting.a, 1);
  CHECK(waiting.take() == Waiting::Ids{3_message, 4_message, 5_message, 6_message});
}

TEST_CASE("a promise of a name that may match any file delays the requests of all files") {
  Waiting waiting;
  const FileGroupRef any = waiting.files.any();
  waiting.promises.add(any, 1);
  waiting.hold(2, waiting.of(waiting.a));
  waiting.hold(3, waiting.of(waiting.b));
  waiting.promises.add(any, 4);
  waiting.hold(5, waiting.of(waiting.b));
  waiting.done(any, 1);
  CHECK(waiting.take() == Waiting::Ids{2_message, 3_message});
  waiting.done(any, 4);
  CHECK(waiting.take() == Waiting::Ids{5_message});
}

TEST_CASE("the scope of a waiting request is known until it is released, for its CANCEL") {
  Waiting waiting;
  waiting.promises.add(waiting.a, 1);
  waiting.hold(2, waiting.of(waiting.a));
  REQUIRE(waiting.held.find(2_message));
  CHECK(waiting.held.find(2_message)->file == waiting.a);
  waiting.held.hold({.message = request(Command::cancel, 2, empty_body()),
                     .scope = *waiting.held.find(2_message),
                     .sequence = 3});
  waiting.done(waiting.a, 1);
  CHECK(waiting.take() == Waiting::Ids{2_message, 2_message});
  CHECK_FALSE(waiting.held.find(2_message));
}

TEST_CASE("random requests are released as soon as, and not before, all that they wait for is done") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    Waiting waiting;
    std::uint64_t state = seed;
    const auto random = [&state](std::uint64_t below) {
      state = state * 6364136223846793005 + 1442695040888963407;
      return (state >> 33) % below;
    };
    const FileGroupRef groups[] = {waiting.a, waiting.b, waiting.group(u"C"), waiting.files.any()};
    // In the order of their sequences: what the table knows, for an obvious search.
    struct Entry {
      std::uint64_t sequence;
      FileGroupRef file;  // none: everything
      bool is_promise;
    };
    std::vector<Entry> all;
    const auto meet = [](const Entry& a, const Entry& b) {
      return !a.file || !b.file || a.file == b.file || a.file->is_any() || b.file->is_any();
    };
    const auto must_wait = [&](const Entry& entry) {
      return std::ranges::any_of(
          all, [&](const Entry& each) { return each.sequence < entry.sequence && meet(each, entry); });
    };
    std::uint64_t next = 1;
    for (int turn = 0; turn < 200; ++turn) {
      const auto what = random(3);
      const Entry entry{next, groups[random(8) == 0 ? 3 : random(3)], what == 0};
      if (what == 0) {
        waiting.promises.add(entry.file, next++);
        all.push_back(entry);
      } else if (what == 1) {
        Entry asked = entry;
        if (random(6) == 0) asked.file = nullptr;
        const OrderScope scope = asked.file ? waiting.of(asked.file) : OrderScope{};
        const bool is_held = waiting.held.hold_up(scope) || waiting.promises.hold_up(scope, next) ||
                             (!scope.is_barrier() && waiting.promises.any_before(*waiting.files.any(), next));
        CHECK(is_held == must_wait(asked));
        if (is_held) {
          waiting.hold(next, scope);
          all.push_back(asked);
        }
        ++next;
      } else {
        std::vector<std::size_t> promised;
        for (std::size_t at = 0; at < all.size(); ++at)
          if (all[at].is_promise) promised.push_back(at);
        if (promised.empty()) continue;
        const Entry done = all[promised[random(promised.size())]];
        std::erase_if(all, [&](const Entry& each) { return each.sequence == done.sequence; });
        waiting.done(done.file, done.sequence);
        for (const MessageId id : waiting.take()) {
          const auto found = std::ranges::find(all, id.number(), &Entry::sequence);
          REQUIRE(found != all.end());
          CHECK_FALSE(must_wait(*found));
          all.erase(found);
        }
        for (const Entry& each : all)
          if (!each.is_promise) CHECK(must_wait(each));
      }
    }
  }
}

}  // namespace longhaul::smb::smb2::test
