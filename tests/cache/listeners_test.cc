// SPDX-License-Identifier: Apache-2.0
#include "cache/listeners.h"

#include <catch2/catch.hpp>
#include <functional>

namespace longhaul::cache {
namespace {

struct Told final : reduction::SegmentListener {
  int stored = 0;
  std::function<void()> then = [] {};
  void on_stored(const reduction::SegmentName&) override { ++stored, then(); }
  void on_dropped(const reduction::SegmentName&) override {}
  void on_loaded(reduction::LoadId, std::optional<Slice>) override {}
};

void tell(Listeners& listeners) {
  listeners.tell([](auto& each) { each.on_stored({}); });
}

TEST_CASE("listeners: all are told, also if one leaves or another comes meanwhile") {
  Listeners listeners;
  Told first, second, third;
  listeners.attach(first);
  listeners.attach(second);
  tell(listeners);
  CHECK(first.stored == 1);
  CHECK(second.stored == 1);
  first.then = [&] {
    listeners.detach(first);
    listeners.detach(second);
    listeners.attach(third);
  };
  tell(listeners);
  CHECK(first.stored == 2);
  CHECK(second.stored == 1);
  CHECK(third.stored == 1);
  listeners.sweep();
  tell(listeners);
  CHECK(first.stored == 2);
  CHECK(third.stored == 2);
}

TEST_CASE("listeners: loads count until they end, and those of one that left have none") {
  Listeners listeners;
  Told stays, leaves;
  listeners.attach(stays);
  listeners.attach(leaves);
  const auto one = listeners.begin_load(stays, 100), other = listeners.begin_load(leaves, 50);
  CHECK(one != other);
  CHECK(listeners.loading_bytes() == 150);
  listeners.detach(leaves);
  CHECK(listeners.end_load(other).listener == nullptr);
  CHECK(listeners.loading_bytes() == 100);
  const auto load = listeners.end_load(one);
  CHECK(load.listener == &stays);
  CHECK(load.size == 100);
  CHECK(listeners.loading_bytes() == 0);
}

}  // namespace
}  // namespace longhaul::cache
