// SPDX-License-Identifier: Apache-2.0
// Models of traffic that does not listen: a sender at a constant bit rate, and a receiver that counts. For
// background load, and to check the network itself.
#pragma once
#include "tests/simulator/distribution.h"
#include "tests/simulator/network.h"

namespace longhaul::simulator {

struct ConstantRateConfig {
  Address to{};
  std::uint64_t rate_bits = 1'000'000;  // IP
  std::uint32_t ip_bytes = 1500;
  TimePoint start{}, stop = TimePoint::max();
};

class ConstantRateSender final : public Endpoint {
 public:
  explicit ConstantRateSender(const ConstantRateConfig& config) : config_(config), next_(config.start) {}

  void receive(Datagram&, TimePoint) override {}
  void transmit(Outbox& out, TimePoint now) override {
    next_ = std::max(next_, config_.start);
    while (next_ <= now && next_ < config_.stop && config_.rate_bits) {
      out.send(config_.to, std::as_bytes(std::span(&number_, 1)), config_.ip_bytes);
      ++number_;
      sent_bits_ += std::uint64_t{config_.ip_bytes} * 8;
      // From the start, so that no rounding adds up.
      next_ = config_.start +
              std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(sent_bits_) * 1e9 /
                                                                 static_cast<double>(config_.rate_bits)));
    }
  }
  std::optional<TimePoint> next_timeout() const override {
    return next_ < config_.stop && config_.rate_bits ? std::optional(next_) : std::nullopt;
  }
  void on_timeout(TimePoint) override {}

  std::uint64_t packets_sent() const { return number_; }

 private:
  ConstantRateConfig config_;
  TimePoint next_;
  std::uint64_t number_ = 0, sent_bits_ = 0;
};

class CountingReceiver final : public Endpoint {
 public:
  void receive(Datagram& datagram, TimePoint now) override {
    ++packets_;
    bytes_ += datagram.ip_bytes;
    corrupted_ += datagram.corrupted;
    delay_ms_.add(std::chrono::duration<double, std::milli>(now - datagram.sent).count());
    last_from_ = datagram.from;
  }
  void transmit(Outbox&, TimePoint) override {}
  std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
  void on_timeout(TimePoint) override {}

  std::uint64_t packets() const { return packets_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t corrupted() const { return corrupted_; }
  Address last_from() const { return last_from_; }
  const Distribution& delay_ms() const { return delay_ms_; }

 private:
  std::uint64_t packets_ = 0, bytes_ = 0, corrupted_ = 0;
  Address last_from_{};
  Distribution delay_ms_;
};

}  // namespace longhaul::simulator
