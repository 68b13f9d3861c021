// SPDX-License-Identifier: Apache-2.0
// See sweep.h.
#include "tools/ttcp/sweep.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <random>

#include "tools/ttcp/fragments.h"
#include "tools/ttcp/send.h"

namespace longhaul::ttcp {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kAnswer = 150s;  // the line may be full of our own packets
constexpr int kEndMarks = 5;
constexpr auto kBetweenMarks = 50ms;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

boost::json::object expect(Channel& control, const char* what, TimePoint deadline, const Stop& stop) {
  const auto message = control.receive(deadline, stop);
  if (!message) throw PeerGone("the other side does not answer on the control connection");
  if (say_of(*message) != what) throw PeerGone("unexpected message from the other side");
  return *message;
}

// What the peer says of the break is worth more than the break.
[[noreturn]] void rethrow_with_reason(const PeerGone& gone, Channel& control, const Stop& stop) {
  control.receive(Clock::now() + 1s, stop);  // throws what it says
  throw gone;
}

class Sweep {
 public:
  Sweep(Channel& control, const SweepOptions& options, const Stop& stop)
      : control_(control), options_(options), stop_(stop), peer_(control.peer()) {}

  Row run(const Test& test);

 private:
  double measure_setup() const {
    const TimePoint began = Clock::now();
    connect_tcp({peer_}, {}, options_.patience, stop_);
    return seconds(Clock::now() - began);
  }
  wan::Descriptor connect_data(std::uint16_t port) const;
  Sent send_packets(const Test& test, std::uint16_t port, const measuring::Pass& pass, Row& row);
  boost::json::object end_udp(int socket);
  boost::json::object end_tcp(int socket);

  Channel& control_;
  const SweepOptions& options_;
  const Stop& stop_;
  Address peer_;
  std::uint32_t id_ = std::random_device{}();
  wan::Descriptor data_;
};

wan::Descriptor Sweep::connect_data(std::uint16_t port) const {
  SocketOptions options = options_.socket;
  options.give_up = kAnswer;
  try {
    return connect_tcp({peer_.with_port(port)}, options, options_.patience, stop_);
  } catch (const Trouble& trouble) {
    throw Trouble(
        std::string(trouble.what()) +
        ", although the control connection works; `serve -p PORT` uses a single port that a firewall can "
        "allow");
  }
}

Sent Sweep::send_packets(const Test& test, std::uint16_t port, const measuring::Pass& pass, Row& row) {
  const Budget budget{test.packets, options_.least_seconds, options_.most_seconds};
  if (!is_udp(test.kind)) {
    const TimePoint began = Clock::now();
    data_ = connect_data(port);
    row.setup_seconds = seconds(Clock::now() - began);
    row.path_mtu = path_mtu_of(data_.get());
    send_all(data_.get(), pass.bytes(), stop_);
    return send_tcp(data_.get(), test.payload_bytes(), budget, stop_);
  }
  if (has_setup(test.kind)) row.setup_seconds = measure_setup();
  data_ = connect_udp(peer_.with_port(port), options_.socket);
  const Sent sent = send_udp(data_.get(), id_, test.payload_bytes(), options_.udp_rate, budget, stop_);
  row.path_mtu = path_mtu_of(data_.get());  // by now it may be known better
  return sent;
}

// The pause lets the queues drain, so that the marks are not lost in them; then five, since any may be.
boost::json::object Sweep::end_udp(int socket) {
  if (auto message = control_.receive(Clock::now() + options_.pause, stop_)) return *message;
  for (int i = 0; i < kEndMarks; ++i) {
    send_end_mark(socket, id_);
    if (auto message = control_.receive(Clock::now() + kBetweenMarks, stop_)) return *message;
  }
  const auto message = control_.receive(Clock::now() + options_.silence + kAnswer, stop_);
  if (!message) throw PeerGone("the other side does not report what it received");
  return *message;
}

// A full send buffer may take minutes on a slow line: as long as it empties, all is well.
boost::json::object Sweep::end_tcp(int socket) {
  int waiting_before = -1;
  TimePoint deadline = Clock::now() + kAnswer;
  for (;;) {
    if (auto message = control_.receive(Clock::now() + 200ms, stop_)) return *message;
    int waiting = 0;
    if (::ioctl(socket, SIOCOUTQ, &waiting) == 0 && waiting != waiting_before) {
      waiting_before = waiting;
      deadline = Clock::now() + kAnswer;
    }
    if (Clock::now() > deadline) throw PeerGone("the other side accepts no more data and sends no message");
  }
}

Row Sweep::run(const Test& test) {
  Row row;
  row.test = test;
  row.is_ipv6 = peer_.is_ipv6();
  const Announcement announcement{
      ++id_,
      is_udp(test.kind),
      test.payload_bytes(),
      options_.socket.buffer_bytes,
      static_cast<std::uint32_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(options_.silence).count()),
      measuring::Pass::draw()};
  control_.send(to_message(announcement), stop_);
  const auto ready = expect(control_, "ready", Clock::now() + kAnswer, stop_);
  const auto port = static_cast<std::uint16_t>(measuring::number(ready, "port", 1, 65535));

  const Fragments before = read_fragments();
  Sent sent;
  try {
    sent = send_packets(test, port, announcement.pass, row);
  } catch (const PeerGone& gone) {
    rethrow_with_reason(gone, control_, stop_);
  }
  control_.send({{"say", "sent"}, {"packets", sent.packets}}, stop_);
  const auto message = is_udp(test.kind) ? end_udp(data_.get()) : end_tcp(data_.get());
  if (say_of(message) != "received") throw PeerGone("unexpected message from the other side");
  const Receipt receipt = to_receipt(message);
  data_ = {};

  row.packets_sent = sent.packets;
  row.send_seconds = sent.seconds;
  row.packets_received = receipt.packets;
  row.bytes_received = is_udp(test.kind) ? receipt.packets * test.packet_bytes : receipt.payload_bytes;
  row.seconds = receipt.seconds + (has_setup(test.kind) ? row.setup_seconds : 0);
  row.duplicates = receipt.duplicates;
  row.out_of_order = receipt.out_of_order;
  row.socket_drops = receipt.socket_drops;
  row.fragments_sent = (read_fragments() - before).created;
  row.fragments_received = receipt.fragments.received;
  row.fragments_failed = receipt.fragments.failed;
  row.ended_by = receipt.ended_by;
  return row;
}

}  // namespace

void run_sweep(const std::vector<Test>& plan, const SweepOptions& options, Report& report, const Stop& stop,
               const OnRow& on_row) {
  const auto addresses = resolve(options.host, options.control_port, Protocol::tcp, options.family);
  Channel control{connect_tcp(addresses, {}, options.patience, stop)};
  report.planned = plan.size();
  report.from = control.local().host();
  report.to = control.peer().host();
  control.greet(measuring::Side::dials, options.token, Clock::now() + options.patience, stop);
  Sweep sweep{control, options, stop};
  for (const Test& test : plan) {
    report.rows.push_back(sweep.run(test));
    on_row(report);
    if (&test != &plan.back()) sleep_until(Clock::now() + options.gap, stop);
  }
  control.send({{"say", "bye"}}, stop);
}

}  // namespace longhaul::ttcp
