// SPDX-License-Identifier: Apache-2.0
// Long streams: `source` sends bytes that nothing can compress, `sink` says what arrived and when. Both hash
// what they saw, and the source compares. A thread for each connection: with few flows that costs least.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "loads.h"
#include "random_bytes.h"
#include "sockets.h"

namespace bench {
namespace {

constexpr std::size_t kPiece = 256 * 1024;
constexpr std::size_t kMarks = 11;  // when 0 %, 10 %, ... 100 % of the announced bytes had come

struct Hello {
  std::uint64_t size;  // announced; 0: until the end
};
struct Report {
  std::uint64_t bytes;
  std::uint64_t hash;
  std::array<std::int64_t, kMarks> mark_ns;  // 0: did not come so far
  std::int64_t last_ns;
};

struct Hash {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state{XXH3_createState(), XXH3_freeState};
  Hash() { XXH3_64bits_reset(state.get()); }
  void add(const void* data, std::size_t size) { XXH3_64bits_update(state.get(), data, size); }
  std::uint64_t value() const { return XXH3_64bits_digest(state.get()); }
};

void take(Descriptor socket) {
  Hello hello{};
  if (!receive_all(socket, &hello, sizeof hello)) return;
  std::vector<char> buffer(kPiece);
  Report report{};
  Hash hash;
  std::size_t marks = 0;
  while (true) {
    ssize_t got = recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) fail("recv");
    if (got == 0) break;
    report.last_ns = now_ns();
    report.bytes += static_cast<std::uint64_t>(got);
    hash.add(buffer.data(), static_cast<std::size_t>(got));
    if (marks == 0) report.mark_ns[marks++] = report.last_ns;
    while (hello.size > 0 && marks < kMarks && report.bytes * (kMarks - 1) >= hello.size * marks)
      report.mark_ns[marks++] = report.last_ns;
  }
  report.hash = hash.value();
  send_all(socket, &report, sizeof report);
}

struct Sent {
  std::int64_t start_ns = 0;  // before connect
  std::int64_t connected_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
  Report report{};
  std::string error;
};

void give(Sent& sent, const Address& to, std::uint64_t size, double seconds, std::uint64_t seed) {
  sent.start_ns = now_ns();
  const std::int64_t until = sent.start_ns + static_cast<std::int64_t>(seconds * 1e9);
  Descriptor socket = connect_to(to);
  sent.connected_ns = now_ns();
  Hello hello{size};
  send_all(socket, &hello, sizeof hello);
  std::vector<std::uint64_t> piece(kPiece / sizeof(std::uint64_t));
  Hash hash;
  while ((size == 0 || sent.bytes < size) && now_ns() < until) {
    make_random(piece, seed);
    std::uint64_t part = size == 0 ? kPiece : std::min<std::uint64_t>(kPiece, size - sent.bytes);
    hash.add(piece.data(), part);
    send_all(socket, piece.data(), part);
    sent.bytes += part;
  }
  sent.hash = hash.value();
  if (shutdown(socket.get(), SHUT_WR) != 0) fail("shutdown");
  if (!receive_all(socket, &sent.report, sizeof sent.report))
    throw std::runtime_error("no report from the sink");
}

void print(const Sent& sent) {
  std::printf(
      "{\"start_ns\": %lld, \"connected_ns\": %lld, \"sent\": %llu, \"received\": %llu, \"intact\": %s, "
      "\"last_ns\": %lld, \"mark_ns\": [",
      static_cast<long long>(sent.start_ns), static_cast<long long>(sent.connected_ns),
      static_cast<unsigned long long>(sent.bytes), static_cast<unsigned long long>(sent.report.bytes),
      sent.bytes == sent.report.bytes && sent.hash == sent.report.hash ? "true" : "false",
      static_cast<long long>(sent.report.last_ns));
  for (std::size_t i = 0; i < kMarks; ++i)
    std::printf("%s%lld", i == 0 ? "" : ", ", static_cast<long long>(sent.report.mark_ns[i]));
  std::printf("]}\n");
}

}  // namespace

void sink(const Words& words) {
  Descriptor listener = listen_on(static_cast<std::uint16_t>(words.number("port", 0)));
  std::printf("{\"ports\": [%u]}\n", port_of(listener));
  std::fflush(stdout);
  while (true) {
    Descriptor socket = accept_from(listener);
    std::thread(
        [](Descriptor taken) {
          try {
            take(std::move(taken));
          } catch (const std::exception& error) {  // the source sees the missing report
            std::fprintf(stderr, "bench_load sink: %s\n", error.what());
          }
        },
        std::move(socket))
        .detach();
  }
}

void source(const Words& words) {
  Address to = parse_address(words.text("to"), static_cast<std::uint16_t>(words.number("port")));
  const std::uint64_t size = words.number("size", 0);
  const double seconds = words.real("seconds");
  std::vector<Sent> all(words.number("flows", 1));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        give(all[i], to, size, seconds, static_cast<std::uint64_t>(now_ns()) * (2 * i + 1));
      } catch (const std::exception& error) {
        all[i].error = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Sent& sent : all) {
    if (!sent.error.empty())
      throw std::runtime_error("after " + std::to_string(sent.bytes) + " bytes: " + sent.error);
    print(sent);
  }
}

}  // namespace bench
