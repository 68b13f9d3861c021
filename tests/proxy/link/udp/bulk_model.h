// SPDX-License-Identifier: Apache-2.0
// A carrier's sender and receiver with the real loss detection, pacing and rate law, and nothing to carry: an
// endless source, in virtual time. Leaves frames, keys and repair to the carrier itself.
#pragma once
#include <cstring>
#include <memory>

#include "proxy/link/udp/pacer.h"
#include "proxy/link/udp/received_packets.h"
#include "proxy/link/udp/sent_packets.h"
#include "tests/simulator/distribution.h"
#include "tests/simulator/flow_meter.h"
#include "tests/simulator/network.h"

namespace longhaul::link::udp {

using simulator::Address;
using simulator::Datagram;
using simulator::Outbox;

inline constexpr std::uint32_t kModelPacket = 1500;  // IP bytes of a data packet
inline constexpr std::uint32_t kSmallPacket = 100;   // of those that are not full

// What stands in a datagram; the line counts a real one's bytes.
struct ModelHeader {
  PacketNumber number{};
  bool is_ack = false;
  std::uint8_t ranges = 0;
  Duration delay{}, arrival{};
};

class BulkReceiver final : public simulator::Endpoint {
 public:
  BulkReceiver(TimePoint start, Duration rtt) : received_(start) { received_.set_round_trip(rtt); }

  void receive(Datagram& datagram, TimePoint now) override {
    ModelHeader header;
    std::memcpy(&header, datagram.payload.data(), sizeof header);
    peer_ = datagram.from;
    meter_.add(now, datagram.ip_bytes);
    if (stands_until_)
      waiting_.push_back(header.number);
    else
      received_.on_packet(header.number, AckAsk::soon, now);
  }
  // Its host does something else for so long: what comes meanwhile is seen late, and all at once.
  void stand_still(TimePoint until) { stands_until_ = until; }
  void transmit(Outbox& out, TimePoint now) override {
    if (stands_until_ || !received_.ack_due() || *received_.ack_due() > now) return;
    const auto ack = received_.make_ack(now);
    ModelHeader header{.is_ack = true,
                       .ranges = static_cast<std::uint8_t>(ack->ranges.size()),
                       .delay = ack->delay,
                       .arrival = std::chrono::floor<std::chrono::microseconds>(ack->arrival)};
    std::array<std::byte, sizeof header + sizeof(NumberRange) * kMaxAckRanges> bytes;
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, ack->ranges.data(), sizeof(NumberRange) * ack->ranges.size());
    out.send(peer_, Bytes(bytes).first(sizeof header + sizeof(NumberRange) * ack->ranges.size()),
             70 + 3 * header.ranges);
  }
  std::optional<TimePoint> next_timeout() const override {
    return stands_until_ ? stands_until_ : received_.ack_due();
  }
  void on_timeout(TimePoint now) override {
    if (!stands_until_ || now < *stands_until_) return;
    stands_until_.reset();
    for (PacketNumber number : std::exchange(waiting_, {})) received_.on_packet(number, AckAsk::soon, now);
  }

  const simulator::FlowMeter& meter() const { return meter_; }

 private:
  ReceivedPackets received_;
  Address peer_{};
  std::optional<TimePoint> stands_until_;
  std::vector<PacketNumber> waiting_;
  simulator::FlowMeter meter_{std::chrono::milliseconds(1)};
};

class BulkSender final : public simulator::Endpoint {
 public:
  BulkSender(Address to, std::unique_ptr<RateLaw> law, TimePoint start)
      : to_(to),
        law_(std::move(law)),
        sent_(start),
        pacer_(start, law_->pacing_rate(), kModelPacket),
        start_(start) {}

  // Sends only now and then: on for `on`, then silent for `off`.
  void set_bursts(Duration on, Duration off) {
    on_ = on;
    off_ = off;
  }

  // Every so many packets a small one, as a session's control frames or ends of messages are.
  void set_small_packets(unsigned every) { small_every_ = every; }

  // Its host does something else for so long: timers and ACKs are late.
  void stand_still(TimePoint until) { stands_until_ = until; }

  void receive(Datagram& datagram, TimePoint now) override {
    ModelHeader header;
    std::memcpy(&header, datagram.payload.data(), sizeof header);
    PacketAck ack{.delay = header.delay, .arrival = header.arrival, .ranges = {}};
    ack.ranges.resize(header.ranges);
    std::memcpy(ack.ranges.data(), datagram.payload.data() + sizeof header,
                sizeof(NumberRange) * header.ranges);
    if (stands_until_)
      waiting_.push_back(ack);
    else
      take_ack(ack, now);
  }
  void on_timeout(TimePoint now) override {
    if (stands_until_) {
      if (now < *stands_until_) return;
      stands_until_.reset();
      for (const PacketAck& ack : std::exchange(waiting_, {})) take_ack(ack, now);
    }
    const auto timeout = sent_.next_timeout();
    if (!timeout || *timeout > now) return;
    sent_.on_timeout(now, events_);
    probes_ += events_.probes;
    take(now);
  }
  void transmit(Outbox& out, TimePoint now) override {
    if (stands_until_) return;
    wake_.reset();
    pacer_.set_rate(now, law_->pacing_rate());
    for (; probes_ > 0; --probes_) send(out, now);
    for (;;) {
      if (!has_data(now)) {
        pacer_.on_idle(now);
        sent_.on_idle();
        return;
      }
      if (sent_.bytes_in_flight() + kModelPacket > law_->window()) {
        pacer_.on_idle(now);
        return;
      }
      sent_.on_missed(pacer_.missed(now));
      auto allowance = pacer_.allowance(now);
      if (allowance == 0) {
        wake_ = std::max(pacer_.next_send(now), now + std::chrono::nanoseconds(1));
        return;
      }
      do {
        send(out, now);
        allowance -= std::min<std::uint64_t>(allowance, kModelPacket);
        pacer_.set_rate(now, law_->pacing_rate());
      } while (allowance >= kModelPacket && sent_.bytes_in_flight() + kModelPacket <= law_->window());
    }
  }
  std::optional<TimePoint> next_timeout() const override {
    if (stands_until_) return stands_until_;
    auto timeout = sent_.next_timeout();
    if (wake_ && (!timeout || *wake_ < *timeout)) timeout = wake_;
    if (next_burst_ && (!timeout || *next_burst_ < *timeout)) timeout = next_burst_;
    return timeout;
  }

  RateLaw& law() { return *law_; }
  const SentPackets& sent() const { return sent_; }
  const simulator::Distribution& rtt_ms() const { return rtt_ms_; }
  void reset_rtt() { rtt_ms_ = {}; }

 private:
  bool has_data(TimePoint now) {
    next_burst_.reset();
    if (off_ == Duration{0}) return true;
    const Duration into = (now - start_) % (on_ + off_);
    if (into < on_) return true;
    next_burst_ = now + (on_ + off_ - into);
    return false;
  }
  void send(Outbox& out, TimePoint now) {
    const ModelHeader header{.number = sent_.next_number()};
    const bool is_small = small_every_ > 0 && header.number.number() % small_every_ == 0;
    const std::uint32_t bytes = is_small ? kSmallPacket : kModelPacket;
    law_->on_send(now, bytes, sent_.bytes_in_flight());
    sent_.on_sent(header.number, now, {.bytes = bytes, .epoch = law_->epoch()});
    pacer_.on_sent(now, bytes);
    out.send(to_, std::as_bytes(std::span(&header, 1)), bytes);
  }
  void take_ack(const PacketAck& ack, TimePoint now) {
    if (!sent_.on_ack(ack, now, events_)) throw std::logic_error("an honest ACK was refused");
    take(now);
  }
  void take(TimePoint now) {
    if (events_.sample.rtt)
      rtt_ms_.add(std::chrono::duration<double, std::milli>(*events_.sample.rtt).count());
    events_.sample.full_packet_bytes = kModelPacket;
    law_->on_sample(events_.sample);
    pacer_.set_rate(now, law_->pacing_rate());
  }

  Address to_;
  std::unique_ptr<RateLaw> law_;
  SentPackets sent_;
  SentEvents events_;
  Pacer pacer_;
  TimePoint start_;
  unsigned probes_ = 0, small_every_ = 0;
  std::optional<TimePoint> wake_, next_burst_, stands_until_;
  std::vector<PacketAck> waiting_;
  Duration on_{0}, off_{0};
  simulator::Distribution rtt_ms_;
};

// Sender at end a, receiver at end b.
struct BulkFlow {
  BulkFlow(simulator::Network& network, simulator::Line& line, std::uint16_t port,
           std::unique_ptr<RateLaw> law, Duration rtt)
      : receiver(network.now(), rtt),
        sender({2, port}, std::move(law), network.now()),
        start(network.now()),
        node(network.attach(sender, line, simulator::LineEnd::a, {1, port})) {
    network.attach(receiver, line, simulator::LineEnd::b, {2, port});
    node.wake();
  }
  double rate(TimePoint from, TimePoint to) const { return receiver.meter().bits_per_second(from, to); }

  BulkReceiver receiver;
  BulkSender sender;
  TimePoint start;
  simulator::Node& node;
};

}  // namespace longhaul::link::udp
