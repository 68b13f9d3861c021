// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/held_memory.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using longhaul::flows::HeldMemory;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kHoldsLittle = 64 * 1024;
constexpr HeldMemory::Run kReadsBoth{.reads_lan = true, .reads_stream = true};

struct FlowAmongOthers {
  std::shared_ptr<modules::Memory> memory = std::make_shared<modules::Memory>(10 << 20);
  HeldMemory others{memory};
  HeldMemory flow{memory};
  link::TimePoint now{1h};

  void use_up() { others.count({.bytes = 10 << 20}); }
  void free() { others.count({}); }
  bool must_leave(HeldMemory::Run run = kReadsBoth) { return flow.must_leave_after(now, run); }
};

}  // namespace

TEST_CASE("the memory of a flow's module is counted once, and returned at its end") {
  const auto memory = std::make_shared<modules::Memory>(1 << 20);
  {
    HeldMemory flow{memory};
    flow.count({.bytes = 100, .queued = 20, .state = 3});
    CHECK(memory->used_bytes() == 123);
    flow.count({.bytes = 1, .queued = 2, .state = 4});
    CHECK(memory->used_bytes() == 7);
    CHECK_FALSE(flow.is_short());
  }
  CHECK(memory->used_bytes() == 0);
}

TEST_CASE("only a flow that holds much is held back, and only while memory is short") {
  FlowAmongOthers test;
  test.flow.count({.bytes = kHoldsLittle + 1, .queued = kHoldsLittle + 1});
  CHECK_FALSE(test.flow.lan_is_held_back());
  CHECK_FALSE(test.flow.stream_is_held_back());
  CHECK_FALSE(test.flow.refuses(kHoldsLittle + 1));
  test.use_up();
  CHECK(test.flow.lan_is_held_back());
  CHECK(test.flow.stream_is_held_back());
  CHECK(test.flow.refuses(kHoldsLittle + 1));
  CHECK_FALSE(test.flow.refuses(kHoldsLittle));
  test.flow.count({.bytes = kHoldsLittle, .queued = kHoldsLittle, .state = 64 << 20});
  CHECK_FALSE(test.flow.lan_is_held_back());
  CHECK_FALSE(test.flow.stream_is_held_back());
}

TEST_CASE("a stream that is held back is read a piece at a time, one each second") {
  FlowAmongOthers test;
  test.use_up();
  CHECK(test.flow.take_piece(test.now));
  CHECK(test.flow.take_piece(test.now));
  test.flow.count({.queued = kHoldsLittle + 1});
  CHECK_FALSE(test.flow.take_piece(test.now));
  CHECK_FALSE(test.must_leave());  // the server's answers free it
  CHECK(test.flow.look_again_at());
  test.now += 1s;
  CHECK(test.flow.take_piece(test.now));
  CHECK_FALSE(test.flow.take_piece(test.now));
}

TEST_CASE("a stalled flow with parts of a frame must go on without its module after a second") {
  FlowAmongOthers test;
  test.use_up();
  test.flow.count({.bytes = kHoldsLittle + 1});
  CHECK_FALSE(test.must_leave());
  REQUIRE(test.flow.look_again_at());
  CHECK(*test.flow.look_again_at() > test.now);
  test.now += 999ms;
  CHECK_FALSE(test.must_leave());

  SECTION("when nothing has changed") {
    test.now += 1ms;
    CHECK(test.must_leave());
  }
  SECTION("not if there was progress") {
    CHECK_FALSE(test.must_leave({.reads_lan = true, .reads_stream = true, .progress = true}));
    test.now += 999ms;
    CHECK_FALSE(test.must_leave());
  }
  SECTION("not if memory was free meanwhile") {
    test.free();
    CHECK_FALSE(test.must_leave());
    CHECK_FALSE(test.flow.look_again_at());
    test.use_up();
    test.now += 1s;
    CHECK_FALSE(test.must_leave());
  }
  SECTION("not if the module reads the LAN no more") {
    test.now += 1s;
    CHECK_FALSE(test.must_leave({.reads_lan = false, .reads_stream = true}));
    CHECK_FALSE(test.flow.look_again_at());
  }
}

TEST_CASE("a module that knows much of its connection leaves a flow that makes progress, too") {
  FlowAmongOthers test;
  test.use_up();
  const HeldMemory::Run moves{.reads_lan = true, .reads_stream = true, .progress = true};
  test.flow.count({.state = 1 << 20});
  CHECK_FALSE(test.must_leave(moves));
  CHECK_FALSE(test.flow.look_again_at());
  test.flow.count({.state = (1 << 20) + 1});
  CHECK_FALSE(test.must_leave(moves));
  CHECK_FALSE(test.flow.lan_is_held_back());  // only the LAN can say what is closed
  test.now += 1s;
  CHECK(test.must_leave(moves));
}
