// SPDX-License-Identifier: Apache-2.0
// A client that waits for each block before it asks for the next, as file systems do without read-ahead, and
// its server. The bytes are random and used once; the client knows them, and compares.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "loads.h"
#include "random_bytes.h"
#include "sockets.h"

namespace bench {
namespace {

struct Request {
  std::uint64_t seed;  // of the block's bytes
  std::uint64_t size;  // in bytes, a multiple of eight
  char padding[84];    // as long as a READ of SMB2 with its frame is, or nearly
};

void serve(Descriptor socket) try {
  set_no_delay(socket);
  Request request;
  std::vector<std::uint64_t> block;
  while (receive_all(socket, &request, sizeof request)) {
    block.resize(request.size / sizeof block[0]);
    make_random(block, request.seed);
    send_all(socket, block.data(), request.size);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "blocks: %s\n", error.what());  // the client's affair; others go on
}

}  // namespace

void blocks(const Words&) {
  Descriptor listener = listen_on(0);
  std::printf("{\"ports\": [%u]}\n", port_of(listener));
  std::fflush(stdout);
  while (true) std::thread(serve, accept_from(listener)).detach();
}

void lock_step(const Words& words) {
  Descriptor socket =
      connect_to(parse_address(words.text("to"), static_cast<std::uint16_t>(words.number("port"))));
  Request request{};
  request.size = words.number("size") / 8 * 8;
  std::vector<std::uint64_t> expected(request.size / 8), got(request.size / 8);
  std::vector<double> took_us;
  const std::uint64_t count = words.number("count"), warm = words.number("warm", 0);
  for (std::uint64_t number = 0; number < warm + count; ++number) {
    // A place of its own in the generator's row for each run and block.
    request.seed = static_cast<std::uint64_t>(now_ns()) * 0x9e3779b97f4a7c15;
    std::uint64_t counter = request.seed;
    make_random(expected, counter);
    const std::int64_t began = now_ns();
    send_all(socket, &request, sizeof request);
    if (!receive_all(socket, got.data(), request.size)) throw std::runtime_error("the server ended");
    const std::int64_t ended = now_ns();
    if (got != expected) throw std::runtime_error("wrong bytes came");
    if (number >= warm) took_us.push_back(static_cast<double>(ended - began) / 1e3);
  }
  double sum = 0;
  for (double took : took_us) sum += took;
  std::sort(took_us.begin(), took_us.end());
  auto at = [&](double share) {
    return took_us[static_cast<std::size_t>(share * static_cast<double>(took_us.size() - 1))];
  };
  std::printf("{\"blocks\": %zu, \"mean_us\": %.1f, \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f}\n",
              took_us.size(), sum / static_cast<double>(took_us.size()), at(0.5), at(0.9), at(0.99));
}

}  // namespace bench
