// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/message_ids.h"

#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "tests/proxy/modules/smb/smb2/ids.h"

using namespace longhaul::smb::smb2;

namespace {

using Renumber = MessageIds::Renumber;
using Refusal = MessageIds::Refusal;

// [MS-SMB2] 3.3.1.1: which ids a server takes. Each once, within what it granted; Samba grants no more while
// the lowest unused lies so far behind.
class Server {
 public:
  bool take(MessageId id, std::uint16_t charge) {
    for (MessageId i = id; i < id + charge; ++i)
      if (!free_.contains(i)) return false;
    for (MessageId i = id; i < id + charge; ++i) free_.erase(i);
    return true;
  }
  std::uint16_t grant(std::uint16_t asked) {
    const MessageId low = free_.empty() ? high_ : *free_.begin();
    const std::uint64_t room = kMostWindow - (high_ - low);
    const std::uint64_t granted = std::min<std::uint64_t>(room, asked);
    for (std::uint64_t i = 0; i < granted; ++i) free_.insert(longhaul::smb::smb2::test::take_next(high_));
    return static_cast<std::uint16_t>(granted);
  }
  std::size_t free() const { return free_.size(); }

 private:
  static constexpr std::uint64_t kMostWindow = 8192;
  std::set<MessageId> free_{0_message};
  MessageId high_ = 1_message;
};

std::optional<MessageId> sent(const MessageIds::Forwarded& forwarded) {
  if (forwarded.refusal != Refusal::none) return std::nullopt;
  return forwarded.id;
}

// Ids below 1 + `credits` granted, id 0 used by NEGOTIATE.
MessageIds with(std::uint16_t credits) {
  MessageIds ids;
  REQUIRE(sent(ids.forward(0_message, 1, Renumber::forbidden)) == 0_message);
  ids.granted(credits);
  ids.finished(0_message);
  return ids;
}

}  // namespace

TEST_CASE("the client's ids reach the server unchanged") {
  MessageIds ids;
  CHECK(ids.top() == 1_message);
  CHECK(sent(ids.forward(0_message, 1, Renumber::forbidden)) == 0_message);
  CHECK(ids.forward(1_message, 1, Renumber::allowed).refusal == Refusal::wait);
  ids.granted(10);
  CHECK(ids.top() == 11_message);
  CHECK(ids.free_ids() == 10);
  CHECK(sent(ids.forward(1_message, 1, Renumber::allowed)) == 1_message);
  CHECK(sent(ids.forward(2_message, 4, Renumber::forbidden)) == 2_message);
  CHECK(ids.client_id(2_message) == 2_message);
  CHECK(ids.sent_as(2_message) == 2_message);
  CHECK(ids.low() == 6_message);
  CHECK(ids.free_ids() == 5);
  // Out of order, as multi-threaded clients send.
  CHECK(sent(ids.forward(8_message, 1, Renumber::allowed)) == 8_message);
  CHECK(sent(ids.forward(6_message, 2, Renumber::allowed)) == 6_message);
  CHECK(ids.low() == 9_message);
}

TEST_CASE("our requests first use the ids that the near half left") {
  MessageIds ids = with(20);
  ids.bank(3_message, 1);
  ids.bank(5_message, 2);
  CHECK(ids.banked() == 3);
  CHECK(ids.take(2, 0) == 5_message);  // in a row
  CHECK(ids.take(1, 1'000) == 3_message);
  CHECK(ids.banked() == 0);
  // The bank is empty: from the top, as long as enough stay for the client.
  CHECK_FALSE(ids.take(1, 1'000));
  const auto top = ids.take(2, 4);
  REQUIRE(top);
  CHECK(*top == 19_message);
  CHECK(ids.free_ids() <= 18);
}

TEST_CASE("adjacent ids in the bank make one request, in whichever order they were added") {
  MessageIds ids = with(20);
  ids.bank(4_message, 1);
  ids.bank(2_message, 1);
  ids.bank(3_message, 1);
  CHECK(ids.take(3, 1'000) == 2_message);
  CHECK(ids.banked() == 0);
}

TEST_CASE("an id that we used is replaced when the client reaches it, and its answer is mapped back") {
  MessageIds ids = with(8);  // 1 to 8
  const auto ours = ids.take(2, 0);
  REQUIRE(ours == 7_message);
  for (MessageId id = 1_message; id < 7_message; ++id)
    REQUIRE(sent(ids.forward(id, 1, Renumber::allowed)) == id);
  // All are used up now; what the server grants next is beyond.
  ids.granted(8);
  const auto moved = sent(ids.forward(7_message, 1, Renumber::allowed));
  REQUIRE(moved);
  CHECK(*moved > 8_message);
  CHECK_FALSE(ids.in_step());
  CHECK(ids.client_id(*moved) == 7_message);
  CHECK(ids.sent_as(7_message) == *moved);
  ids.finished(*moved);
  CHECK(ids.sent_as(7_message) == 7_message);

  CHECK(ids.forward(8_message, 1, Renumber::forbidden).refusal == Refusal::impossible);
}

TEST_CASE("a request of more ids than are free in a row gets them when no response can bring any") {
  using Waits = MessageIds::Waits;
  MessageIds ids = with(4);
  // Ours go to the top of what is granted: three free ones, then one used.
  for (int i = 0; i < 10; ++i) {
    REQUIRE(ids.take(1, 0));
    ids.granted(4);
  }
  REQUIRE(ids.free_ids() == 34);
  REQUIRE(ids.forward(1_message, 8, Renumber::allowed).refusal == Refusal::wait);
  CHECK_FALSE(ids.burn(Waits::no));
  CHECK_FALSE(ids.burn(Waits::yes));  // a response may bring them
  const auto burnt = ids.burn(Waits::in_vain);
  REQUIRE(burnt);
  CHECK(burnt->id == 1_message);
  CHECK(burnt->charge == 3);
  ids.granted(static_cast<std::uint16_t>(burnt->charge + ids.lacking(9_message, 8)));
  CHECK(sent(ids.forward(1_message, 8, Renumber::allowed)));
}

TEST_CASE("a request of more ids than the only run has gets them for an ECHO") {
  using Waits = MessageIds::Waits;
  MessageIds ids = with(4);
  REQUIRE(ids.take(1, 0));
  REQUIRE(ids.free_ids() == 3);
  REQUIRE(ids.forward(1_message, 8, Renumber::allowed).refusal == Refusal::wait);
  const auto burnt = ids.burn(Waits::in_vain);
  REQUIRE(burnt);
  CHECK(burnt->charge == 3);
  CHECK_FALSE(ids.hopeless());
  ids.granted(static_cast<std::uint16_t>(burnt->charge + ids.lacking(9_message, 8)));
  CHECK(sent(ids.forward(1_message, 8, Renumber::allowed)));
}

TEST_CASE("a server that grants less than requested is sent a limited number of ECHOs") {
  using Waits = MessageIds::Waits;
  MessageIds ids = with(4);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(ids.take(1, 0));
    ids.granted(4);
  }
  REQUIRE(ids.forward(1_message, 100, Renumber::allowed).refusal == Refusal::wait);
  unsigned echoes = 0;
  for (; const auto burnt = ids.burn(Waits::in_vain); ++echoes) {
    REQUIRE(echoes < 1000);
    CHECK_FALSE(ids.hopeless());
    ids.granted(burnt->charge);
  }
  CHECK(echoes > MessageIds::kMostTries);
  CHECK(ids.hopeless());

  // A slow one is asked for as long as it grants more than before.
  MessageIds slow = with(4);
  REQUIRE(slow.take(1, 0));
  REQUIRE(slow.forward(1_message, 100, Renumber::allowed).refusal == Refusal::wait);
  for (echoes = 0; !sent(slow.forward(1_message, 100, Renumber::allowed)); ++echoes) {
    const auto burnt = slow.burn(Waits::in_vain);
    REQUIRE(burnt);
    slow.granted(static_cast<std::uint16_t>(burnt->charge + 1));
  }
  CHECK(echoes > MessageIds::kMostTries);
  CHECK_FALSE(slow.hopeless());
}

TEST_CASE("a client and a proxy never use an id twice or without a grant, and neither starves") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    const unsigned local_of_ten = seed % 10;  // so many of ten requests does the near half answer
    const std::uint16_t most_charge = seed % 3 == 0 ? 16 : 1;  // 1: no multi-credit
    const std::uint16_t generous = seed % 2 ? 33 : 1;          // what the client asks for with each request
    Server server;
    MessageIds ids;
    struct Sent {
      MessageId id;
      std::uint16_t asked;
      std::optional<MessageId> client_id;
    };
    std::vector<Sent> at_server;
    MessageId client_next;
    std::uint64_t client_credits = 1;
    struct Waiting {
      MessageId id;
      std::uint16_t charge;
    };
    std::deque<Waiting> waiting;
    std::size_t answered = 0, own = 0;

    const auto answer = [&](std::size_t index) {
      const Sent sent = at_server[index];
      at_server.erase(at_server.begin() + static_cast<std::ptrdiff_t>(index));
      const std::uint16_t granted = server.grant(sent.asked);
      ids.granted(granted);
      if (sent.client_id) {
        CHECK(ids.client_id(sent.id) == *sent.client_id);
        client_credits += granted;
        ++answered;
      }
      ids.finished(sent.id);
    };
    const auto try_waiting = [&] {
      while (!waiting.empty()) {
        const auto forwarded = ids.forward(waiting.front().id, waiting.front().charge, Renumber::allowed);
        REQUIRE(forwarded.refusal != Refusal::impossible);
        if (forwarded.refusal == Refusal::wait) return;
        REQUIRE(server.take(forwarded.id, waiting.front().charge));
        at_server.push_back({forwarded.id, std::max(generous, waiting.front().charge), waiting.front().id});
        waiting.pop_front();
      }
    };
    using Waits = MessageIds::Waits;
    const auto waits = [&] {
      return waiting.empty() ? Waits::no : at_server.empty() ? Waits::in_vain : Waits::yes;
    };
    const auto burn = [&] {
      while (const auto burnt = ids.burn(waits(), most_charge)) {
        REQUIRE(burnt->charge >= 1);
        REQUIRE(burnt->charge <= most_charge);
        REQUIRE(server.take(burnt->id, burnt->charge));
        const auto lacking = waiting.empty() ? 0
                                             : ids.lacking(waiting.front().id + waiting.front().charge,
                                                           waiting.front().charge);
        at_server.push_back({burnt->id, static_cast<std::uint16_t>(burnt->charge + lacking), {}});
      }
    };

    for (int step = 0; step < 3'000; ++step) {
      if (client_credits > 0 && !one_in(3)) {
        const auto charge =
            static_cast<std::uint16_t>(1 + random() % std::min<std::uint64_t>(most_charge, client_credits));
        const MessageId id = client_next;
        client_next += charge;
        client_credits -= charge;
        if (answered > 0 && random() % 10 < local_of_ten) {
          ids.bank(id, charge);
          client_credits += charge;
        } else {
          waiting.push_back({id, charge});
        }
      }
      if (answered > 0 && one_in(3)) {
        const auto charge = static_cast<std::uint16_t>(1 + random() % most_charge);
        const std::uint16_t asked = one_in(2) ? charge : ids.credits_to_ask(charge);
        if (const auto id = ids.take(charge, 16)) {
          REQUIRE(server.take(*id, charge));
          at_server.push_back({*id, asked, {}});
          ++own;
        }
      }
      burn();
      try_waiting();
      if (!at_server.empty() && one_in(2)) answer(random() % at_server.size());
      try_waiting();
    }
    // Everybody is served in the end.
    for (int rounds = 0; rounds < 10'000 && !(waiting.empty() && at_server.empty()); ++rounds) {
      burn();
      try_waiting();
      if (!at_server.empty()) answer(0);
      try_waiting();
    }
    CHECK(waiting.empty());
    CHECK(at_server.empty());
    CHECK(answered > 50);
    if (local_of_ten > 0 || generous > 1) CHECK(own > 0);  // else the client uses all that there is
    CHECK(ids.free_ids() == server.free());
  }
}
