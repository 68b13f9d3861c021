// SPDX-License-Identifier: Apache-2.0
// Send what is to be sent, wait for a datagram or the deadline, and again.
#include "tools/txn/udp_script.h"

#include "tools/measuring/trouble.h"

namespace longhaul::txn {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLargestDatagram = 65'536;

Family family_of(const SocketAddress& address) {
  return address.storage.ss_family == AF_INET ? Family::ipv4 : Family::ipv6;
}

}  // namespace

UdpClient::UdpClient(const Workload& workload, SocketAddress to, const std::atomic<bool>& stop)
    : workload_(workload),
      to_(to),
      stop_(stop),
      requester_(std::make_unique<Requester>(workload_, family_of(to))),
      in_(kLargestDatagram) {}

void UdpClient::transmit(TimePoint now) {
  while (requester_->poll_transmit(now, out_)) {
    socket_->send_datagram(out_, nullptr);
    now = Clock::now();  // a full socket makes it wait
  }
}

void UdpClient::transact(std::uint32_t transaction) {
  // UDP has no connection to set up: EFT-SHORT's costs a socket, a port and a first datagram.
  if (!socket_ || workload_.script == Script::eft_short) {
    socket_.emplace(workload_, to_.storage.ss_family, stop_);
    socket_->connect(to_);
  }
  requester_->begin(transaction);
  TimePoint heard = Clock::now();
  while (!requester_->done()) {
    transmit(Clock::now());
    const auto got = socket_->receive_datagram(in_, nullptr, requester_->next_timeout());
    const TimePoint now = Clock::now();
    if (got && requester_->receive(now, Bytes(in_).first(*got)) == Exchange::Of::current) heard = now;
    if (now - heard > workload_.patience)
      throw measuring::Trouble(
          "no datagram received from " + to_.text() + " for " +
          std::to_string(std::chrono::duration_cast<std::chrono::seconds>(workload_.patience).count()) +
          " s; does a firewall block UDP?");
    requester_->on_timeout(now);
  }
  transmit(Clock::now());  // the acknowledgement of the answer
  if (workload_.script == Script::eft_short) socket_.reset();
}

void serve_udp(const Workload& workload, Socket& socket, Tally& tally, const std::atomic<bool>& stop) {
  Responder responder{workload, family_of(socket.local())};
  Buffer in(kLargestDatagram);
  Buffer out;
  SocketAddress peer;
  SocketAddress from;
  bool has_peer = false;
  while (!stop) {
    const auto got = socket.receive_datagram(in, &from, responder.next_timeout());
    const TimePoint now = Clock::now();
    if (got && responder.receive(now, Bytes(in).first(*got)) == Exchange::Of::current) {
      peer = from;  // each connection of EFT-SHORT has a port of its own
      has_peer = true;
    }
    responder.on_timeout(now);
    while (has_peer && responder.poll_transmit(Clock::now(), out)) socket.send_datagram(out, &peer);
    tally.count(responder.requests(), responder.counts());
  }
}

}  // namespace longhaul::txn
