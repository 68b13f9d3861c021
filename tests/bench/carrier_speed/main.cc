// SPDX-License-Identifier: Apache-2.0
// What the UDP carrier costs without sockets: two sessions and two carriers in one thread hand packets to
// each other in memory, by a clock of the program's own. Prints the CPU time of the sending and the receiving
// side apart, as Gbit/s of payload that one core would reach. The kernel's share is measured by the
// end-to-end benchmarks.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "proxy/link/udp/udp_carrier.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kLargest = 1472;  // what Ethernet carries

double cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct End {
  End(Side side, Cipher cipher, UdpAddress peer, TimePoint now)
      : pool(256 << 20, 64),
        retained(256 << 20),
        session({.side = side, .max_peer_streams = 64}, pool, retained, nullptr, now),
        carrier({.side = side,
                 .keys = keys_from_exporter(Buffer(kExportedBytes, std::byte{7})),
                 .cipher = cipher,
                 .peer = peer,
                 .settings = {.rate_bits = 20'000'000'000},
                 .new_carrier = [this] { return ++names; }},
                session, now) {}
  CarrierId names;
  CreditPool pool;
  RetainedBudget retained;
  Session session;
  UdpCarrier carrier;
  double cpu = 0;
  std::uint64_t packets = 0;
};

// Everything that `from` may send now goes to `to`; the costs are counted for each.
void move(End& from, End& to, const UdpAddress& address, TimePoint now) {
  thread_local DatagramBatch batch;
  for (;;) {
    double start = cpu_seconds();
    from.session.on_timeout(now);
    from.carrier.on_timeout(now);
    if (from.carrier.state() == UdpCarrier::State::up) from.carrier.prefer(now);
    bool sent = from.carrier.transmit(batch, now);
    double middle = cpu_seconds();
    from.cpu += middle - start;
    if (!sent) return;
    for (std::size_t at = 0; at < batch.bytes.size(); at += batch.segment_bytes) {
      std::size_t size = std::min(batch.segment_bytes, batch.bytes.size() - at);
      if (size > kLargest) continue;
      ++from.packets;
      if (!to.carrier.receive(MutableBytes(batch.bytes).subspan(at, size), address, now)) std::abort();
    }
    to.cpu += cpu_seconds() - middle;
  }
}

void measure(Cipher cipher, const char* name) {
  TimePoint now{1h};
  UdpAddress here(boost::asio::ip::make_address("10.0.0.1"), 1),
      there(boost::asio::ip::make_address("10.0.0.2"), 2);
  End a(Side::dialler, cipher, there, now), b(Side::acceptor, cipher, {}, now);
  auto step = [&](Duration time) {
    now += time;
    move(a, b, here, now);
    move(b, a, there, now);
  };
  for (int i = 0; i < 2000; ++i) step(100us);
  if (a.session.preferred() == kNoCarrier) std::abort();
  OpenRequest request;
  request.destination.address = boost::asio::ip::make_address("10.0.0.3");
  StreamId id = a.session.open(request, now).id();
  Buffer bytes(64 * 1024);
  std::uint64_t read = 0, total = std::uint64_t{2} << 30;
  a.cpu = b.cpu = 0;
  a.packets = 0;
  while (read < total) {
    double start = cpu_seconds();
    Stream* sending = a.session.find(id);
    while (std::size_t room = sending->writer().may_write())
      sending->writer().write(Bytes(bytes).first(std::min(room, bytes.size())));
    while (a.session.poll_event()) {
    }
    a.cpu += cpu_seconds() - start;
    step(50us);
    start = cpu_seconds();
    if (Stream* receiving = b.session.find(id)) {
      while (auto event = b.session.poll_event())
        if (event->kind == Event::Kind::stream && event->stream_event == EventKind::opened)
          receiving->give_answer({});
      std::size_t size = receiving->reader().readable().size();
      read += size;
      if (size) receiving->reader().consume(size, now, 1ms);
    }
    b.cpu += cpu_seconds() - start;
  }
  double gbit = 8e-9 * static_cast<double>(read), gigabytes = 1e-9 * static_cast<double>(read);
  double packets = static_cast<double>(a.packets);
  std::printf(
      "%-18s sender %6.2f Gbit/s, %.3f CPU s/GB, %4.0f ns a packet; receiver %6.2f Gbit/s, %.3f CPU s/GB, "
      "%4.0f ns a packet\n",
      name, gbit / a.cpu, a.cpu / gigabytes, 1e9 * a.cpu / packets, gbit / b.cpu, b.cpu / gigabytes,
      1e9 * b.cpu / packets);
}

}  // namespace

int main() {
  measure(Cipher::aes_128_gcm, "AES-128-GCM");
  measure(Cipher::chacha20_poly1305, "ChaCha20-Poly1305");
}
