// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/start_phase.h"

#include <algorithm>

namespace longhaul::link::udp {
namespace {

constexpr Duration kLongestTrain = std::chrono::milliseconds(400);  // the queue that the first packets may be

StartRamp::Step bounded(StartRamp::Step step, double most) {
  step.rate = std::min(step.rate, most);
  return step;
}

}  // namespace

double StartPhase::train_packets() const {
  const auto rate = packet_time_.rate();
  if (!rate) return most_packets_;
  return std::clamp(*rate * seconds(kLongestTrain) / packet_bytes_, 4., most_packets_);
}

double StartPhase::most() const {
  const double most = max_rate_ > 0 ? static_cast<double>(max_rate_) : 1e18;
  const auto slow = packet_time_.rate();
  return slow ? std::min(most, 1.25 * *slow) : most;
}

StartRamp::Around StartPhase::around(const LineModel& line) const {
  return {line.watch, line.span(), line.tests.losses().total_loss(), line.rate(), most(), train_packets()};
}

StartRamp::Step StartPhase::on_train(const RateSample& sample, const LineModel& line) {
  return bounded(ramp_.on_train(sample, around(line)), most());
}

StartRamp::Step StartPhase::on_ramp(const RateSample& sample, const LineModel& line) {
  return bounded(ramp_.on_ramp(sample, line.carried(sample.delivery), around(line)), most());
}

}  // namespace longhaul::link::udp
