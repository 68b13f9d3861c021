// SPDX-License-Identifier: Apache-2.0
// What the erasure code costs: source bytes per second of CPU time of one thread, with everything that a
// carrier would call. Symbols are copied in from the caches, where a carrier has them, for it has just filled
// or opened the packet, and for comparison from a working set that is far larger. Prints a line of JSON per
// case.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fec/window_decoder.h"
#include "fec/window_encoder.h"

using namespace longhaul::fec;

namespace {

constexpr std::size_t kPayload = 1400;
constexpr std::size_t kSymbols = 48'000;  // 67 MB

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// `repairs` after every `group` symbols, over the last `window`.
struct Pattern {
  std::uint32_t window, group, repairs;
};

struct Made {
  Repair head;
  std::size_t at;  // in the store
  std::size_t bytes;
};

class Speed {
 public:
  explicit Speed(std::size_t working_set)
      : working_set_(working_set), bytes_(working_set * kPayload), store_(kSymbols / 2 * (kPayload + 2)) {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < bytes_.size(); i += 8) {
      const std::uint64_t word = random();
      std::memcpy(&bytes_[i], &word, 8);
    }
  }

  double encode(Pattern p) {
    made_.clear();
    std::size_t at = 0;
    std::uint64_t sum = 0;
    WindowEncoder encoder;
    const double began = cpu_seconds();
    for (std::size_t i = 0; i < kSymbols; ++i) {
      encoder.add(symbol(i));
      if ((i + 1) % p.group == 0)
        for (const Repair& r : encoder.repair_last(p.window, p.repairs))
          sum += std::to_integer<unsigned>(r.coded[7]);
    }
    const double took = cpu_seconds() - began;
    checksum_ += sum;
    WindowEncoder again;
    for (std::size_t i = 0; i < kSymbols; ++i) {
      again.add(symbol(i));
      if ((i + 1) % p.group != 0) continue;
      for (const Repair& r : again.repair_last(p.window, p.repairs)) {
        std::memcpy(&store_[at], r.coded.data(), r.coded.size());
        made_.push_back({r, at, r.coded.size()});
        at += r.coded.size();
      }
    }
    return kSymbols * kPayload / took / 1e9;
  }

  struct Decoded {
    double speed;
    std::uint64_t lost, recovered;
  };

  // Of what encode() made last. Packets are lost independently; or the first `burst` of every group.
  Decoded decode(Pattern p, double loss, std::uint32_t burst = 0) {
    std::mt19937_64 random(2);
    std::vector<bool> lost(kSymbols), lost_repair(made_.size());
    std::uint64_t losses = 0;
    for (std::size_t i = 0; i < kSymbols; ++i)
      losses += lost[i] = burst ? i % p.group < burst : std::generate_canonical<double, 32>(random) < loss;
    for (std::size_t i = 0; i < made_.size(); ++i)
      lost_repair[i] = !burst && std::generate_canonical<double, 32>(random) < loss;
    WindowDecoder decoder;
    std::size_t next = 0;
    const double began = cpu_seconds();
    for (std::size_t i = 0; i < kSymbols; ++i) {
      if (!lost[i]) decoder.on_source(i, symbol(i));
      for (; next < made_.size() && made_[next].head.window.first + made_[next].head.window.count == i + 1;
           ++next) {
        if (lost_repair[next]) continue;
        Repair r = made_[next].head;
        r.coded = {&store_[made_[next].at], made_[next].bytes};
        decoder.on_repair(r);
        while (const auto restored = decoder.poll_restored())
          if (std::memcmp(restored->payload.data(), symbol(restored->id).data(), kPayload) != 0) wrong();
      }
    }
    return {kSymbols * kPayload / (cpu_seconds() - began) / 1e9, losses, decoder.counters().recovered};
  }

 private:
  [[noreturn]] static void wrong() {
    std::fputs("WRONG BYTES\n", stderr);
    std::exit(1);
  }
  Bytes symbol(std::size_t i) const { return {&bytes_[i % working_set_ * kPayload], kPayload}; }

  std::size_t working_set_;
  std::vector<std::byte> bytes_, store_;
  std::vector<Made> made_;
  std::uint64_t checksum_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  struct Case {
    const char* name;
    Pattern pattern;
    std::uint32_t burst;
  };
  const Case cases[] = {
      {"sliding window 64, 1 repair per 10", {64, 10, 1}, 0},
      {"sliding window 100, 1 repair per 10", {100, 10, 1}, 0},
      {"sliding window 192, 2 repairs per 20", {192, 20, 2}, 0},
      {"blocks 20:2", {20, 20, 2}, 2},
      {"blocks 100:10", {100, 100, 10}, 10},
  };
  for (int round = 0; round < rounds; ++round) {
    for (const bool cached : {true, false}) {
      Speed speed(cached ? 256 : kSymbols);
      for (const Case& c : cases) {
        std::printf("{\"case\": \"%s\", \"from\": \"%s\", \"encode\": %.2f", c.name,
                    cached ? "cache" : "memory", speed.encode(c.pattern));
        for (const double loss : {0.0, 0.01, 0.05, 0.08}) {
          const auto d = speed.decode(c.pattern, loss);
          std::printf(", \"decode at %.0f %%\": %.2f, \"unrecovered at %.0f %%\": %.4f", loss * 100, d.speed,
                      loss * 100,
                      d.lost ? 1 - static_cast<double>(d.recovered) / static_cast<double>(d.lost) : 0);
        }
        if (c.burst) {
          const auto d = speed.decode(c.pattern, 0, c.burst);
          std::printf(", \"decode all it can\": %.2f, \"unrecovered\": %.4f", d.speed,
                      1 - static_cast<double>(d.recovered) / static_cast<double>(d.lost));
        }
        std::puts("}");
        std::fflush(stdout);
      }
    }
  }
}
