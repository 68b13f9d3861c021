// SPDX-License-Identifier: Apache-2.0
// How much a TCP model keeps in flight: Reno and CUBIC. Leaves what is lost, and when to send again, to
// tcp.h.
#pragma once
#include <memory>

#include "tests/simulator/timeline.h"

namespace longhaul::simulator {

struct TcpAck {
  TimePoint now{};
  Duration rtt{};           // of the newest segment that it covers
  std::uint64_t round = 0;  // counts round trips: one ends when what was sent at its start is acknowledged
  double acked = 0;         // segments, newly
  bool window_limited = false;  // the sender would have sent more
};

// Windows are counted in segments.
class TcpLaw {
 public:
  virtual ~TcpLaw() = default;
  virtual void on_ack(const TcpAck& ack) = 0;  // not while a loss is repaired
  virtual void on_loss(TimePoint now) = 0;     // once for each window in which something was lost
  virtual void on_timeout(TimePoint now) = 0;
  virtual double window() const = 0;
};

// HyStart++ (RFC 9406): leaves slow start when the round trip grows, by way of a slower growth that can be
// taken back.
class HystartPlusPlus {
 public:
  // What to multiply slow start's growth with; nothing: slow start is over.
  std::optional<double> on_ack(const TcpAck& ack);

 private:
  std::uint64_t round_ = 0;
  Duration last_round_least_ = Duration::max(), this_round_least_ = Duration::max();
  Duration baseline_{};
  int samples_ = 0, conservative_rounds_ = 0;
  bool conservative_ = false;
};

class RenoLaw final : public TcpLaw {
 public:
  void on_ack(const TcpAck& ack) override;
  void on_loss(TimePoint now) override;
  void on_timeout(TimePoint now) override;
  double window() const override { return window_; }

 private:
  double window_ = 10;  // RFC 6928
  double threshold_ = 1e12;
};

struct CubicOptions {
  bool hystart = true;
};

// RFC 9438.
class CubicLaw final : public TcpLaw {
 public:
  explicit CubicLaw(CubicOptions options = {}) : options_(options) {}
  void on_ack(const TcpAck& ack) override;
  void on_loss(TimePoint now) override;
  void on_timeout(TimePoint now) override;
  double window() const override { return window_; }

 private:
  void reduce();
  CubicOptions options_;
  HystartPlusPlus hystart_;
  double window_ = 10;
  double threshold_ = 1e12;
  double largest_ = 0;                      // W_max
  double before_ = 0;                       // cwnd_prior
  double friendly_ = 0;                     // W_est
  double origin_ = 0;                       // the plateau of this epoch
  double to_origin_ = 0;                    // K, seconds
  std::optional<TimePoint> epoch_start_{};  // of the current growth
};

}  // namespace longhaul::simulator
