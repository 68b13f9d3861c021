// SPDX-License-Identifier: Apache-2.0
// A network in virtual time: endpoints without I/O that are attached to the ends of duplex lines. A seed
// repeats a run exactly. Leaves what the endpoints say to each other to them.
#pragma once
#include <deque>
#include <memory>
#include <unordered_map>

#include "tests/simulator/direction.h"

namespace longhaul::simulator {

class Node;
class Line;

// Where an endpoint puts what it sends.
class Outbox {
 public:
  // `ip_bytes`: what the line counts, headers included.
  void send(Address to, Bytes payload, std::uint32_t ip_bytes);

 private:
  friend class Node;
  explicit Outbox(Node& node) : node_(node) {}
  Node& node_;
};

// A protocol without I/O: the sender and receiver of a transport, a proxy, a model of either.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // One datagram; what it causes to be sent goes at the next transmit().
  virtual void receive(Datagram& datagram, TimePoint now) = 0;
  // Everything that may go now. Called after receive() and on_timeout(), and after Node::wake().
  virtual void transmit(Outbox& out, TimePoint now) = 0;
  // After on_timeout(now) and transmit(now) it lies after `now`.
  virtual std::optional<TimePoint> next_timeout() const = 0;
  virtual void on_timeout(TimePoint now) = 0;
  // Its host stood still (Node::stall()), so its timer is so late. What arrived meanwhile comes next, then
  // on_timeout().
  virtual void on_stall(Duration late, TimePoint now) {
    (void)late;
    (void)now;
  }
};

enum class LineEnd : std::uint8_t { a, b };

struct LineConfig {
  DirectionConfig a_to_b{}, b_to_a{};
  // Receivers at both ends take what came within this time at once, as network cards do. Makes fast lines
  // cheap to simulate.
  Duration interrupt_interval{0};

  static LineConfig symmetric(const DirectionConfig& both) { return {both, both, Duration{0}}; }
};

// Where an endpoint is attached.
class Node final : public Timer {
 public:
  Node(Timeline& timeline, Endpoint& endpoint, Line& line, LineEnd end, Address address);

  // Its application gave the endpoint something to send, or changed a deadline.
  void wake() { serve(timeline().now()); }
  Address address() const { return address_; }
  // What it sends comes from there, and only what is sent there reaches it, as behind a NAT that forgot it.
  void readdress(Address address);
  // Deadlines are met this much late, as by a daemon whose timers are coarse.
  void set_timer_slack(Duration slack) { timer_slack_ = slack; }

  // Its host has no processor for it: it neither reads nor sends. What arrives waits in its socket, up to so
  // many IP bytes; the rest is lost.
  struct Stall {
    Duration time{};
    std::uint64_t buffer_bytes = 4 << 20;
  };
  void stall(const Stall& stall);

  // Against which to count what the endpoint delivers: everything it sent, IP bytes.
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t packets_sent() const { return packets_sent_; }

 private:
  friend class Outbox;
  friend class Line;
  void fire(TimePoint now) override;
  void serve(TimePoint now);
  void receive(Datagram& datagram);
  void end_stall();

  struct Waiting {
    Datagram datagram;
    std::vector<std::byte> payload;
  };

  Endpoint& endpoint_;
  Line& line_;
  LineEnd end_;
  Address address_;
  Duration timer_slack_{0};
  std::uint64_t bytes_sent_ = 0, packets_sent_ = 0;
  bool waiting_ = false;  // was given datagrams and not yet served
  std::optional<Stall> stall_;
  std::optional<TimePoint> due_;    // when it began
  std::vector<Waiting> in_socket_;  // during a stall
  std::uint64_t in_socket_bytes_ = 0;
  TimePoint stuck_at_{};
  unsigned stuck_ = 0;
};

class Line {
 public:
  Line(Timeline& timeline, DatagramPool& pool, const LineConfig& config, std::uint64_t seed);
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Direction& from(LineEnd end) { return end == LineEnd::a ? a_to_b_ : b_to_a_; }
  Direction& a_to_b() { return a_to_b_; }
  Direction& b_to_a() { return b_to_a_; }
  void cut();
  void restore();
  // Delivered to an unknown address.
  std::uint64_t unroutable() const { return unroutable_; }

 private:
  friend class Node;
  struct End {
    std::unordered_map<std::uint64_t, Node*> nodes;
    std::vector<Node*> to_serve;
  };
  static std::uint64_t key(Address address) { return std::uint64_t{address.host} << 16 | address.port; }
  End& end(LineEnd which) { return ends_[which == LineEnd::a ? 0 : 1]; }
  void connect(Direction& direction, End& to);
  void add(Node& node);
  void remove(Node& node);

  Direction a_to_b_, b_to_a_;
  std::array<End, 2> ends_{};
  std::vector<Node*> serving_;
  std::uint64_t unroutable_ = 0;
};

class Network : public Timeline {
 public:
  explicit Network(std::uint64_t seed) : seed_(seed) {}

  // Both live as long as the network; the endpoint outlives it.
  Line& add_line(const LineConfig& config);
  Node& attach(Endpoint& endpoint, Line& line, LineEnd end, Address address);

  std::uint64_t seed() const { return seed_; }
  std::size_t datagrams_inside() const { return pool_.in_use(); }

 private:
  std::uint64_t seed_;
  DatagramPool pool_;
  std::deque<Line> lines_;
  std::deque<Node> nodes_;
};

}  // namespace longhaul::simulator
