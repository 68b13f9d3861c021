// SPDX-License-Identifier: Apache-2.0
// Sends of at most a millisecond, the average kept by timers that are late, and no burst after a pause.
#include "proxy/link/udp/pacer.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
// What goes out within `time` if the timer is late by up to `lateness`, and the largest burst at one moment.
struct PacedPackets {
  std::uint64_t bytes = 0;
  std::uint64_t largest_send = 0;
  std::uint64_t largest_burst = 0;
};
PacedPackets run(std::uint64_t rate, Duration time, Duration lateness) {
  std::mt19937 random{7};
  Pacer pacer{kStart, rate, 1500};
  PacedPackets sent;
  for (TimePoint now = kStart; now < kStart + time;) {
    std::uint64_t burst = 0;
    while (const auto allowance = pacer.allowance(now)) {
      const std::uint64_t bytes = std::max<std::uint64_t>(allowance / 1500, 1) * 1500;
      pacer.on_sent(now, bytes);
      sent.largest_send = std::max(sent.largest_send, bytes);
      burst += bytes;
    }
    sent.bytes += burst;
    sent.largest_burst = std::max(sent.largest_burst, burst);
    now = std::max(pacer.next_send(now), now + 1ns);
    if (lateness > 0ns)
      now += Duration{static_cast<Duration::rep>(random() % static_cast<std::uint64_t>(lateness.count()))};
  }
  return sent;
}
}  // namespace

TEST_CASE("a pacer keeps its rate, in sends of at most a millisecond or one packet") {
  for (const std::uint64_t rate : {125'000ull, 6'480'000ull, 1'250'000'000ull}) {
    INFO("rate " << rate);
    const auto sent = run(rate, 10s, 0ns);
    CHECK(static_cast<double>(sent.bytes) == Approx(10.0 * static_cast<double>(rate)).epsilon(0.005));
    CHECK(sent.largest_send <= std::max<std::uint64_t>(rate / 1000, 1500));
  }
}

TEST_CASE("a late timer keeps the average rate, with bursts as long as its delay") {
  for (const std::uint64_t rate : {125'000ull, 6'480'000ull, 125'000'000ull}) {
    INFO("rate " << rate);
    const auto sent = run(rate, 10s, 8ms);
    CHECK(static_cast<double>(sent.bytes) == Approx(10.0 * static_cast<double>(rate)).epsilon(0.01));
    CHECK(sent.largest_burst <= rate * 12 / 1000 + 3000);
  }
}

TEST_CASE("a host that stalls once does not send the missed packets into a short queue at once") {
  for (const std::uint64_t rate : {6'480'000ull, 25'000'000ull}) {
    INFO("rate " << rate);
    Pacer pacer{kStart, rate, 1500};
    double queue = 0, longest = 0;  // of a line of the same rate, bytes
    std::uint64_t sent = 0;
    TimePoint drained = kStart, next_stall = kStart + 100ms;
    for (TimePoint now = kStart; now < kStart + 10s;) {
      queue = std::max(
          0.0, queue - static_cast<double>(rate) * std::chrono::duration<double>(now - drained).count());
      drained = now;
      while (const auto allowance = pacer.allowance(now)) {
        const std::uint64_t bytes = std::max<std::uint64_t>(allowance / 1500, 1) * 1500;
        pacer.on_sent(now, bytes);
        queue += static_cast<double>(bytes);
        sent += bytes;
      }
      longest = std::max(longest, queue);
      now = std::max(pacer.next_send(now), now + 1ns);
      if (now < next_stall) continue;
      now += 20ms;
      next_stall = now + 100ms;
    }
    CHECK(longest <= 64 * 1024);
    // 100 of 120 ms at the rate, and a little of what was missed.
    CHECK(static_cast<double>(sent) > 0.84 * 10 * static_cast<double>(rate));
  }
}

TEST_CASE("after a pause at most two milliseconds of data are sent at once") {
  Pacer pacer{kStart, 6'000'000, 1500};
  pacer.on_sent(kStart, 1500);
  (void)pacer.next_send(kStart + 29ms);
  pacer.on_idle(kStart + 1ms);
  std::uint64_t burst = 0;
  while (const auto allowance = pacer.allowance(kStart + 10s)) {
    pacer.on_sent(kStart + 10s, allowance);
    burst += allowance;
  }
  CHECK(burst <= 12'000);
  CHECK(burst > 9'000);
}

TEST_CASE("after sending beyond the allowance the pacer waits for the excess") {
  Pacer pacer{kStart, 1'000'000, 1500};
  pacer.on_sent(kStart, 30'000);
  CHECK(pacer.allowance(kStart + 29ms) == 0);
  const TimePoint next = pacer.next_send(kStart + 29ms);
  CHECK(next >= kStart + 30ms);
  CHECK(next <= kStart + 30ms + 1us);
  CHECK(pacer.allowance(next) == 1500);
}

TEST_CASE("a late caller misses only the time that cannot be made up for, if it is late for once") {
  constexpr std::uint64_t kBytesPerSecond = 6'000'000;
  for (const bool usually_late : {false, true}) {
    Pacer pacer(kStart, kBytesPerSecond, 1500);
    TimePoint now = kStart;
    const auto send_all = [&] {
      while (const std::uint64_t bytes = pacer.allowance(now)) pacer.on_sent(now, bytes);
    };
    for (int i = 0; i < 1000; ++i) {
      send_all();
      now = pacer.next_send(now) + (usually_late ? 15ms : 0ms);
      if (!usually_late || i > 100) CHECK(pacer.missed(now) == 0ms);
    }
    send_all();
    now = pacer.next_send(now) + 50ms;
    // 32 KiB, 5.5 ms of this rate, go at once.
    if (usually_late)
      CHECK(pacer.missed(now) == 0ms);
    else
      CHECK(pacer.missed(now) / 100us == 445);
    send_all();
    CHECK(pacer.missed(now) == 0ms);
    pacer.next_send(now);
    pacer.on_idle(now);
    CHECK(pacer.missed(now + 1s) == 0ms);
  }
}
