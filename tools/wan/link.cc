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

Link::Link(const LinkConfig& config, std::uint64_t seed) : config_(config), chances_(seed), managed_(seed) {
  bucket_.use(config_.policer, {});
  manage_queue();
}

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
      const Propagation::Packet out{sent + std::max(Duration{0}, config_.delay + jitter),
                                    packet.number,
                                    packet.id,
                                    packet.bytes,
                                    packet.twice,
                                    packet.flipped_at,
                                    packet.marked};
      packet.held_back ? travelling_.hold_back(out, config_.reorder_by) : travelling_.send(out);
    }
    sending_.pop_front();
  }
}

Fate Link::arrive(TimePoint at, std::uint32_t bytes, PacketId id, const PacketTraits& traits) {
  at = latest_ = std::max(at, latest_);
  ++counters_.packets_in;
  counters_.bytes_in += bytes;
  serve(at);
  launch_sent(at);
  forget_started(at);
  if (config_.cut) {
    ++counters_.cut;
    return Fate::dropped;
  }
  if (!bucket_.take(bytes, at)) {
    ++counters_.policed;
    return Fate::dropped;
  }

  const bool idle = sent_at(busy_bits_) <= at;
  if (!managed_.is_on() && !idle && waiting_bytes_ + bytes > config_.queue_bytes) {
    ++counters_.dropped;
    return Fate::dropped;
  }

  // Every die is thrown for every packet that enters, whatever the others say: see chance.h.
  QueuedPacket packet{.number = next_number_++,
                      .id = id,
                      .bytes = bytes,
                      .flow = traits.flow,
                      .ecn = traits.ecn,
                      .arrived = at};
  const bool single_loss = chances_.loss.happens(config_.loss);
  const bool burst_loss = chances_.burst_lost(config_.burst_loss);
  packet.jitter_share = 2 * chances_.jitter.draw() - 1;
  packet.held_back = chances_.reorder.happens(config_.reorder);
  packet.twice = chances_.duplicate.happens(config_.duplicate);
  // Below the share the draw is even again, so it also says which bit.
  const double corrupt = chances_.corrupt.draw();
  packet.flipped_at = corrupt < config_.corrupt ? std::optional(corrupt / config_.corrupt) : std::nullopt;
  const bool on_demand = to_lose_ > 0;
  if (on_demand) {
    --to_lose_;
    counters_.lost_on_demand = at;
  }
  packet.lost = single_loss || burst_loss || on_demand;

  if (managed_.is_on()) {
    const auto enqueued = managed_.enqueue(packet, at);
    count(enqueued.drops);
    if (!enqueued.taken) return Fate::dropped;
    serve(at);
    counters_.queue_peak_bytes = std::max(counters_.queue_peak_bytes, waiting_bytes_ + managed_.bytes());
  } else {
    if (idle) {  // then nothing is left in sending_ or waiting_ that counts from the old busy_since_
      busy_since_ = at;
      busy_bits_ = 0;
    } else {
      waiting_.push_back({busy_bits_, bytes});
      waiting_bytes_ += bytes;
      counters_.queue_peak_bytes = std::max(counters_.queue_peak_bytes, waiting_bytes_);
    }
    put_on_line(packet);
  }
  // One that waits is lost when it has gone on the line: its queue may drop it before. Its owner need not
  // know.
  return packet.lost ? Fate::lost : Fate::carried;
}

void Link::put_on_line(const QueuedPacket& packet) {
  counters_.bytes_on_line += packet.bytes;
  counters_.lost += packet.lost;
  if (config_.rate_bits != 0) busy_bits_ += std::uint64_t{packet.bytes} * 8;
  sending_.push_back({busy_bits_, packet.number, packet.id, packet.bytes, packet.jitter_share, packet.lost,
                      packet.held_back, packet.twice, packet.flipped_at, packet.ecn == Ecn::experienced});
}

// ------------------------------------------------------------------------------------------ the managed
// queue

void Link::count(const ManagedQueue::Drops& drops) {
  counters_.dropped += drops.all;
  counters_.dropped_early += drops.early;
}

void Link::serve(TimePoint at) {
  while (!managed_.empty()) {
    const TimePoint free = sent_at(busy_bits_);
    if (free > at) return;
    const TimePoint start = managed_.start(free);
    launch_sent(start);
    const auto next = managed_.dequeue(start);
    count(next.drops);
    if (!next.packet) return;
    counters_.marked += next.packet->ecn == Ecn::experienced;
    if (start != free) {
      busy_since_ = start;
      busy_bits_ = 0;
    }
    put_on_line(*next.packet);
  }
}

// After a change of the configuration.
void Link::manage_queue() {
  const bool is_managed = config_.aqm && config_.rate_bits != 0;
  const auto waiting =
      managed_.use(is_managed ? &*config_.aqm : nullptr, {config_.rate_bits, config_.queue_bytes}, latest_);
  for (const QueuedPacket& packet : waiting) {
    waiting_.push_back({busy_bits_, packet.bytes});
    waiting_bytes_ += packet.bytes;
    put_on_line(packet);
  }
}

void Link::change(TimePoint at, const LinkConfig& config) {
  at = latest_ = std::max(at, latest_);
  serve(at);
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
  bucket_.use(config_.policer, at);
  manage_queue();
  serve(at);
}

Departure Link::deliver(const Propagation::Out& out) {
  const Propagation::Packet& packet = out.packet;
  const unsigned copies = packet.twice ? 2 : 1;
  counters_.packets_out += copies;
  counters_.bytes_out += std::uint64_t{packet.bytes} * copies;
  counters_.duplicated += copies - 1;
  counters_.reordered += out.is_late;
  return {packet.at, packet.id, packet.bytes, copies, packet.flipped_at, packet.marked};
}

std::optional<Departure> Link::poll(TimePoint now) {
  serve(now);
  launch_sent(now);
  if (const auto gone = managed_.poll_dropped())
    return Departure{.at = now, .id = gone->id, .bytes = gone->bytes, .copies = 0};
  const auto out = travelling_.poll(now);
  return out ? std::optional(deliver(*out)) : std::nullopt;
}

std::optional<TimePoint> Link::next_wakeup() const {
  std::optional<TimePoint> next;
  const auto consider = [&next](TimePoint at) { next = next ? std::min(*next, at) : at; };
  if (managed_.has_dropped()) consider(latest_);
  if (const auto at = travelling_.next()) consider(*at);
  if (!sending_.empty()) {  // whatever of these comes out first, it is not before this
    const Duration shortest = std::max(Duration{0}, config_.delay - config_.jitter);
    consider(travelling_.in_order(sent_at(sending_.front().end_bits) + shortest));
  }
  return next;
}

std::uint64_t Link::queued_bytes(TimePoint now) {
  serve(now);
  std::uint64_t bytes = waiting_bytes_ + managed_.bytes();
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
