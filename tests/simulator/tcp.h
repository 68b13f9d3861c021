// SPDX-License-Identifier: Apache-2.0
// Models of a TCP sender and receiver that share a line with what is tested: segments and acknowledgements
// with ranges, loss detection, timeouts. Leaves the window to tcp_law.h; has no handshake, and carries no
// bytes.
#pragma once
#include <deque>
#include <map>

#include "tests/simulator/distribution.h"
#include "tests/simulator/flow_meter.h"
#include "tests/simulator/network.h"
#include "tests/simulator/tcp_law.h"

namespace longhaul::simulator {

// What a segment says; the line counts a real one's bytes. Segments have numbers, not bytes.
struct TcpHeader {
  struct Range {
    std::uint64_t first = 0, end = 0;
  };
  bool is_ack = false;
  std::uint8_t ranges = 0;
  std::uint64_t number = 0;        // of the segment
  std::uint64_t transmission = 0;  // counts every sending; an ACK says the newest one that has arrived
  TimePoint sent{};                // its time; an ACK gives back that of the segment that caused it
  std::uint64_t acked = 0;         // all segments before it have arrived
  std::array<Range, 4> received{};
};

struct TcpConfig {
  Address to{};
  std::uint32_t segment_bytes = 1448;  // payload: 1500 less 20 IP, 20 TCP and 12 for time stamps
  std::uint32_t ip_bytes = 1500;
  std::uint64_t most_in_flight = 1 << 20;  // segments: the receiver's window
  std::uint64_t segments = 0;              // to send; 0: no end
  TimePoint start{};
};

struct TcpCounters {
  std::uint64_t sent = 0, retransmitted = 0, losses = 0, loss_events = 0, timeouts = 0;
};

class TcpSender final : public Endpoint {
 public:
  TcpSender(const TcpConfig& config, std::unique_ptr<TcpLaw> law) : config_(config), law_(std::move(law)) {}

  void receive(Datagram& datagram, TimePoint now) override;
  void transmit(Outbox& out, TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  void on_timeout(TimePoint now) override;

  const TcpCounters& counters() const { return counters_; }
  const Distribution& rtt_ms() const { return rtt_ms_; }
  void reset_rtt() { rtt_ms_ = {}; }
  double window() const { return law_->window(); }
  bool finished() const { return config_.segments && first_ == config_.segments; }

 private:
  enum class State : std::uint8_t { in_flight, received, lost };
  struct Segment {
    std::uint64_t transmission = 0;
    State state = State::in_flight;
    bool again = false;
  };
  struct Sending {
    std::uint64_t transmission, number;
  };
  Segment& segment(std::uint64_t number) { return segments_[number - first_]; }
  bool take(Segment& segment);
  double mark_received(const TcpHeader& ack);
  void find_losses(TimePoint now);
  void send(std::uint64_t number, Outbox& out, TimePoint now);
  void measure_rtt(Duration rtt);
  Duration timeout() const;

  TcpConfig config_;
  std::unique_ptr<TcpLaw> law_;
  std::deque<Segment> segments_;  // from first_ on
  std::uint64_t first_ = 0;       // not yet acknowledged
  std::uint64_t next_ = 0;        // never sent
  std::deque<Sending> sendings_;  // in the order of sending
  std::deque<std::uint64_t> to_repeat_;
  std::uint64_t transmissions_ = 0, newest_received_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t repaired_at_ = 0;  // a loss before this segment belongs to an event that was counted
  std::uint64_t round_ = 0, round_end_ = 0;
  bool window_limited_ = false;
  Duration smoothed_{0}, variation_{0};
  int backoff_ = 0;
  std::optional<TimePoint> timeout_at_{};
  TcpCounters counters_;
  Distribution rtt_ms_;
};

class TcpReceiver final : public Endpoint {
 public:
  explicit TcpReceiver(std::uint32_t segment_bytes = 1448) : segment_bytes_(segment_bytes) {}

  void receive(Datagram& datagram, TimePoint now) override;
  void transmit(Outbox& out, TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override { return ack_at_; }
  void on_timeout(TimePoint now) override { ack_now_ |= ack_at_ && *ack_at_ <= now; }

  // In-order payload.
  const FlowMeter& meter() const { return meter_; }

 private:
  void add(std::uint64_t number);

  std::uint32_t segment_bytes_;
  FlowMeter meter_;
  Address peer_{};
  std::uint64_t next_ = 0;                          // in order up to here
  std::map<std::uint64_t, std::uint64_t> islands_;  // beyond, first to end
  std::deque<std::uint64_t> recent_;  // a segment of each island that changed lately, newest first
  std::uint64_t newest_transmission_ = 0;
  TimePoint echo_{};
  int unacknowledged_ = 0;
  bool ack_now_ = false;
  std::optional<TimePoint> ack_at_{};
};

}  // namespace longhaul::simulator
