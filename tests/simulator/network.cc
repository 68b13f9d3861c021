// SPDX-License-Identifier: Apache-2.0
// Hands datagrams to the node with their address and serves every node that got some, once.
#include "tests/simulator/network.h"

#include <stdexcept>
#include <utility>

namespace longhaul::simulator {

void Outbox::send(Address to, Bytes payload, std::uint32_t ip_bytes) {
  node_.bytes_sent_ += ip_bytes;
  ++node_.packets_sent_;
  node_.line_.from(node_.end_).enter(node_.address_, to, payload, ip_bytes);
}

Node::Node(Timeline& timeline, Endpoint& endpoint, Line& line, LineEnd end, Address address)
    : Timer(timeline), endpoint_(endpoint), line_(line), end_(end), address_(address) {
  line_.add(*this);
}

void Node::readdress(Address address) {
  line_.remove(*this);
  address_ = address;
  line_.add(*this);
}

void Node::fire(TimePoint now) {
  // A protocol whose deadline does not move would stop virtual time for ever.
  if (now != stuck_at_) stuck_ = 0;
  stuck_at_ = now;
  if (++stuck_ > 10'000) throw std::logic_error("an endpoint's deadline does not move on");
  endpoint_.on_timeout(now);
  serve(now);
}

void Node::serve(TimePoint now) {
  if (stall_) return;
  Outbox out(*this);
  endpoint_.transmit(out, now);
  auto next = endpoint_.next_timeout();
  if (next) *next += timer_slack_;
  timeline().set(*this, next);
}

void Node::receive(Datagram& datagram) {
  datagram.arrived = timeline().now();
  if (!stall_) return endpoint_.receive(datagram, datagram.arrived);
  if (in_socket_bytes_ + datagram.ip_bytes > stall_->buffer_bytes) return;
  in_socket_bytes_ += datagram.ip_bytes;
  in_socket_.push_back({datagram, {datagram.payload.begin(), datagram.payload.end()}});
}

void Node::stall(const Stall& stall) {
  if (stall_) return;
  stall_ = stall;
  due_ = endpoint_.next_timeout();
  timeline().set(*this, std::nullopt);
  timeline().after(stall.time, [this] { end_stall(); });
}

void Node::end_stall() {
  const TimePoint now = timeline().now();
  stall_.reset();
  in_socket_bytes_ = 0;
  const bool is_late = due_ && *due_ < now;
  if (is_late) endpoint_.on_stall(now - *due_, now);
  for (Waiting& each : std::exchange(in_socket_, {})) {
    each.datagram.payload = each.payload;
    endpoint_.receive(each.datagram, now);
  }
  if (is_late) endpoint_.on_timeout(now);
  serve(now);
}

Line::Line(Timeline& timeline, DatagramPool& pool, const LineConfig& config, std::uint64_t seed)
    : a_to_b_(timeline, pool, config.a_to_b, seed * 2), b_to_a_(timeline, pool, config.b_to_a, seed * 2 + 1) {
  a_to_b_.set_interrupt_interval(config.interrupt_interval);
  b_to_a_.set_interrupt_interval(config.interrupt_interval);
  connect(a_to_b_, end(LineEnd::b));
  connect(b_to_a_, end(LineEnd::a));
}

void Line::connect(Direction& direction, End& to) {
  direction.connect(
      [this, &to, &direction](Datagram& datagram) {
        const auto found = to.nodes.find(key(datagram.to));
        if (found == to.nodes.end()) {
          ++unroutable_;
          return;
        }
        Node& node = *found->second;
        node.receive(datagram);
        if (node.waiting_) return;
        node.waiting_ = true;
        to.to_serve.push_back(&node);
      },
      [this, &to] {
        serving_.swap(to.to_serve);
        for (Node* node : serving_) {
          node->waiting_ = false;
          node->serve(node->timeline().now());
        }
        serving_.clear();
      });
}

void Line::add(Node& node) {
  if (!end(node.end_).nodes.emplace(key(node.address_), &node).second)
    throw std::logic_error("two nodes with one address at one end of a line");
}

void Line::remove(Node& node) { end(node.end_).nodes.erase(key(node.address_)); }

void Line::cut() {
  a_to_b_.cut();
  b_to_a_.cut();
}

void Line::restore() {
  a_to_b_.restore();
  b_to_a_.restore();
}

Line& Network::add_line(const LineConfig& config) {
  return lines_.emplace_back(*this, pool_, config, seed_ * 1'000 + lines_.size());
}

Node& Network::attach(Endpoint& endpoint, Line& line, LineEnd end, Address address) {
  return nodes_.emplace_back(*this, endpoint, line, end, address);
}

}  // namespace longhaul::simulator
