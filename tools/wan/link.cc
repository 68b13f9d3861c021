// SPDX-License-Identifier: Apache-2.0
// The line's arithmetic: serialisation counted in bits since the line became busy, the queue's bound, the
// delay.
#include "tools/wan/link.h"

#include <algorithm>

namespace longhaul::wan {
namespace {

constexpr std::uint64_t kNanos = 1'000'000'000;

// Rounded up: a packet is out when its last bit is. Split at whole seconds so that no product overflows.
Duration time_for(std::uint64_t bits, std::uint64_t rate_bits) {
  if (rate_bits == 0) return Duration{0};
  const std::uint64_t part = (bits % rate_bits) * kNanos;
  return Duration{bits / rate_bits * kNanos + (part + rate_bits - 1) / rate_bits};
}

std::uint64_t bits_within(Duration time, std::uint64_t rate_bits) {
  const auto nanos = static_cast<std::uint64_t>(std::max<Duration::rep>(time.count(), 0));
  return nanos / kNanos * rate_bits + nanos % kNanos * rate_bits / kNanos;
}

std::uint64_t minus(std::uint64_t from, std::uint64_t amount) { return from > amount ? from - amount : 0; }

}  // namespace

Link::Link(const LinkConfig& config, std::uint64_t seed) : config_(config), chances_(seed) {}

void Link::reseed(std::uint64_t seed) { chances_ = LinkChances{seed}; }

TimePoint Link::sent_at(std::uint64_t bits) const { return busy_since_ + time_for(bits, config_.rate_bits); }

void Link::forget_started(TimePoint at) {
  while (!waiting_.empty() && sent_at(waiting_.front().start_bits) <= at) {
    waiting_bytes_ -= waiting_.front().bytes;
    waiting_.pop_front();
  }
}

void Link::launch_sent(TimePoint at) {
  while (!sending_.empty()) {
    const Sending& packet = sending_.front();
    const TimePoint sent = sent_at(packet.end_bits);
    if (sent > at) return;
    if (!packet.lost) {
      const auto jitter = Duration{
          static_cast<Duration::rep>(packet.jitter_share * static_cast<double>(config_.jitter.count()))};
      Travelling out{std::max(order_floor_, sent + std::max(Duration{0}, config_.delay + jitter)),
                     packet.number,
                     packet.id,
                     packet.bytes,
                     packet.twice,
                     packet.flipped_at};
      if (packet.held_back) {
        out.at += config_.reorder_by;
        held_back_.push(out);
      } else {
        order_floor_ = out.at;
        travelling_.push_back(out);
      }
    }
    sending_.pop_front();
  }
}

Fate Link::arrive(TimePoint at, std::uint32_t bytes, PacketId id) {
  at = latest_ = std::max(at, latest_);
  ++counters_.packets_in;
  counters_.bytes_in += bytes;
  launch_sent(at);
  forget_started(at);

  const bool idle = sent_at(busy_bits_) <= at;
  if (idle) {  // then nothing is left in sending_ or waiting_ that counts from the old busy_since_
    busy_since_ = at;
    busy_bits_ = 0;
  } else if (waiting_bytes_ + bytes > config_.queue_bytes) {
    ++counters_.dropped;
    return Fate::dropped;
  }

  counters_.bytes_on_line += bytes;
  const std::uint64_t start_bits = busy_bits_;
  if (config_.rate_bits != 0) busy_bits_ += std::uint64_t{bytes} * 8;
  if (!idle) {
    waiting_.push_back({start_bits, bytes});
    waiting_bytes_ += bytes;
    counters_.queue_peak_bytes = std::max(counters_.queue_peak_bytes, waiting_bytes_);
  }

  // Every die is thrown for every packet that enters, whatever the others say: see chance.h.
  const bool single_loss = chances_.loss.happens(config_.loss);
  const bool burst_loss = chances_.burst_lost(config_.burst_loss);
  const double jitter_share = 2 * chances_.jitter.draw() - 1;
  const bool held_back = chances_.reorder.happens(config_.reorder);
  const bool twice = chances_.duplicate.happens(config_.duplicate);
  // Below the share the draw is even again, so it also says which bit.
  const double corrupt = chances_.corrupt.draw();
  const auto flipped_at = corrupt < config_.corrupt ? std::optional(corrupt / config_.corrupt) : std::nullopt;
  const bool on_demand = to_lose_ > 0;
  if (on_demand) {
    --to_lose_;
    counters_.lost_on_demand = at;
  }
  const bool lost = single_loss || burst_loss || on_demand;
  sending_.push_back(
      {busy_bits_, next_number_++, id, bytes, jitter_share, lost, held_back, twice, flipped_at});
  if (!lost) return Fate::carried;
  ++counters_.lost;
  return Fate::lost;
}

void Link::change(TimePoint at, const LinkConfig& config) {
  at = latest_ = std::max(at, latest_);
  launch_sent(at);
  forget_started(at);
  const std::uint64_t done = sent_at(busy_bits_) <= at
                                 ? busy_bits_
                                 : std::min(busy_bits_, bits_within(at - busy_since_, config_.rate_bits));
  for (Sending& packet : sending_) packet.end_bits = minus(packet.end_bits, done);
  for (Waiting& packet : waiting_) packet.start_bits = minus(packet.start_bits, done);
  busy_bits_ = minus(busy_bits_, done);
  busy_since_ = at;
  config_ = config;
}

Departure Link::take(const Travelling& packet) {
  const unsigned copies = packet.twice ? 2 : 1;
  counters_.packets_out += copies;
  counters_.bytes_out += std::uint64_t{packet.bytes} * copies;
  counters_.duplicated += copies - 1;
  if (packet.number < highest_out_) ++counters_.reordered;
  highest_out_ = std::max(highest_out_, packet.number + 1);
  return {packet.at, packet.id, packet.bytes, copies, packet.flipped_at};
}

std::optional<Departure> Link::poll(TimePoint now) {
  launch_sent(now);
  const bool in_order = !travelling_.empty() && travelling_.front().at <= now;
  const bool late = !held_back_.empty() && held_back_.top().at <= now;
  if (in_order && (!late || held_back_.top() > travelling_.front())) {
    const Travelling packet = travelling_.front();
    travelling_.pop_front();
    return take(packet);
  }
  if (!late) return std::nullopt;
  const Travelling packet = held_back_.top();
  held_back_.pop();
  return take(packet);
}

std::optional<TimePoint> Link::next_wakeup() const {
  std::optional<TimePoint> next;
  const auto consider = [&next](TimePoint at) { next = next ? std::min(*next, at) : at; };
  if (!travelling_.empty()) consider(travelling_.front().at);
  if (!held_back_.empty()) consider(held_back_.top().at);
  if (!sending_.empty()) {  // whatever of these comes out first, it is not before this
    const Duration shortest = std::max(Duration{0}, config_.delay - config_.jitter);
    consider(std::max(order_floor_, sent_at(sending_.front().end_bits) + shortest));
  }
  return next;
}

std::uint64_t Link::queued_bytes(TimePoint now) const {
  std::uint64_t bytes = waiting_bytes_;
  for (const Waiting& packet : waiting_) {
    if (sent_at(packet.start_bits) > now) break;
    bytes -= packet.bytes;
  }
  return bytes;
}

void Link::reset_counters(TimePoint now) {
  counters_ = {};
  counters_.queue_peak_bytes = queued_bytes(now);
}

}  // namespace longhaul::wan
