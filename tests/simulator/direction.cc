// SPDX-License-Identifier: Apache-2.0
// The stages of a datagram between both ends of a direction, in order: cut, MTU, policer, flipped bits, link,
// cut.
#include "tests/simulator/direction.h"

#include <algorithm>

namespace longhaul::simulator {

Direction::Direction(Timeline& timeline, DatagramPool& pool, const DirectionConfig& config,
                     std::uint64_t seed)
    : Timer(timeline), pool_(pool), config_(config), link_(config.link, seed), corruption_(seed, 16) {
  bucket_.use(config_.policer, timeline.now());
}

void Direction::connect(Deliver deliver, DeliveredAll delivered_all) {
  deliver_ = std::move(deliver);
  delivered_all_ = std::move(delivered_all);
}

void Direction::flip_bits(Datagram& datagram) {
  datagram.corrupted = true;
  ++counters_.corrupted;
  if (datagram.payload.empty()) return;
  const auto count = 1 + static_cast<int>(corruption_.draw() * 8);
  for (int i = 0; i < count; ++i) {
    const auto bit =
        static_cast<std::size_t>(corruption_.draw() * static_cast<double>(datagram.payload.size() * 8));
    datagram.payload[bit / 8] ^= std::byte(1u << (bit % 8));
  }
}

void Direction::enter(Address from, Address to, Bytes payload, std::uint32_t ip_bytes, wan::Ecn ecn) {
  const TimePoint now = timeline().now();
  const wan::PacketId id =
      pool_.put({.from = from, .to = to, .ip_bytes = ip_bytes, .sent = now, .payload = {}}, payload);
  if (tap_) tap_(pool_[id]);
  if (!up_ || (config_.mtu_bytes && ip_bytes > config_.mtu_bytes) || !bucket_.take(ip_bytes, now)) {
    if (!up_)
      ++counters_.cut;
    else if (config_.mtu_bytes && ip_bytes > config_.mtu_bytes)
      ++counters_.too_large;
    else
      ++counters_.policed;
    return pool_.give_back(id);
  }
  if (corruption_.happens(config_.corrupt)) flip_bits(pool_[id]);
  const wan::PacketTraits traits{
      .flow = (std::uint64_t{from.host} << 32 | to.host) ^ (std::uint64_t{from.port} << 16 | to.port),
      .ecn = ecn};
  if (link_.arrive(now, ip_bytes, id, traits) != wan::Fate::carried) pool_.give_back(id);
  arm();
}

void Direction::arm() {
  auto next = link_.next_wakeup();
  if (next && interrupt_interval_ > Duration{0})
    next = std::max(*next, last_interrupt_ + interrupt_interval_);
  timeline().set(*this, next);
}

void Direction::fire(TimePoint now) {
  bool any = false;
  while (const auto departure = link_.poll(now)) {
    if (departure->copies == 0) {
      // Its queue dropped it.
    } else if (up_) {
      any = true;
      if (departure->copies > 1) {
        const MutableBytes payload = pool_[departure->id].payload;
        copy_.assign(payload.begin(), payload.end());
      }
      // A copy of the head: the receiver may send, and so move the slots.
      Datagram datagram = pool_[departure->id];
      datagram.marked = departure->marked;
      deliver_(datagram);
      for (unsigned i = 1; i < departure->copies; ++i) {
        std::copy(copy_.begin(), copy_.end(), datagram.payload.begin());
        deliver_(datagram);
      }
    } else {
      counters_.cut += departure->copies;
    }
    pool_.give_back(departure->id);
  }
  if (any) last_interrupt_ = now;
  arm();
  if (any) delivered_all_();
}

void Direction::change(const DirectionConfig& config) {
  bucket_.use(config.policer, timeline().now());
  config_ = config;
  link_.change(timeline().now(), config.link);
  arm();
}

Duration Direction::queue_delay() {
  if (config_.link.rate_bits == 0) return Duration{0};
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
      static_cast<double>(queued_bytes()) * 8 / static_cast<double>(config_.link.rate_bits)));
}

DirectionCounters Direction::counters() const {
  DirectionCounters counters = counters_;
  counters.link = link_.counters();
  return counters;
}

void Direction::reset_counters() {
  counters_ = {};
  link_.reset_counters(timeline().now());
}

}  // namespace longhaul::simulator
