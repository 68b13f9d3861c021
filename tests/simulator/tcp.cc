// SPDX-License-Identifier: Apache-2.0
// Loss is seen by the order of transmissions (three later ones arrived, as RACK and RFC 9002 do without their
// time), so lost repetitions are seen too; RFC 6298 with Linux's bounds does the rest.
#include "tests/simulator/tcp.h"

#include <algorithm>
#include <cstring>

namespace longhaul::simulator {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kReordering = 3;   // RFC 5681's duplicate ACKs
constexpr Duration kLeastTimeout = 200ms;  // Linux's; RFC 6298 says a second
constexpr Duration kDelayedAck = 40ms;
constexpr std::uint32_t kAckIpBytes = 52;  // 20 IP, 20 TCP, 12 time stamps

std::optional<TcpHeader> header_of(const Datagram& datagram) {
  TcpHeader header;
  if (datagram.corrupted || datagram.payload.size() != sizeof header) return std::nullopt;
  std::memcpy(&header, datagram.payload.data(), sizeof header);
  return header;
}

}  // namespace

// ---- Sender

bool TcpSender::take(Segment& segment) {
  if (segment.state == State::received) return false;
  if (segment.state == State::in_flight) --in_flight_;
  segment.state = State::received;
  return true;
}

double TcpSender::mark_received(const TcpHeader& ack) {
  double newly = 0;
  for (; first_ < std::min(ack.acked, next_); ++first_) {
    newly += take(segments_.front());
    segments_.pop_front();
  }
  for (std::size_t i = 0; i < ack.ranges; ++i) {
    // Islands grow at their end; what was known stays known, so the walk stops there. What a merged island
    // hides from it the first range says: the segment that came last.
    const auto [begin, end] = ack.received[i];
    for (std::uint64_t number = std::min(end, next_); number > std::max(begin, first_); --number) {
      if (!take(segment(number - 1))) break;
      ++newly;
    }
  }
  return newly;
}

void TcpSender::find_losses(TimePoint now) {
  bool event = false;
  while (!sendings_.empty() && sendings_.front().transmission + kReordering <= newest_received_) {
    const auto [transmission, number] = sendings_.front();
    sendings_.pop_front();
    if (number < first_) continue;
    Segment& lost = segment(number);
    if (lost.state != State::in_flight || lost.transmission != transmission) continue;
    lost.state = State::lost;
    --in_flight_;
    ++counters_.losses;
    to_repeat_.push_back(number);
    event |= number >= repaired_at_;
  }
  if (!event) return;
  repaired_at_ = next_;
  ++counters_.loss_events;
  law_->on_loss(now);
}

void TcpSender::receive(Datagram& datagram, TimePoint now) {
  const auto ack = header_of(datagram);
  if (!ack || !ack->is_ack) return;
  measure_rtt(now - ack->sent);
  const double newly = mark_received(*ack);
  newest_received_ = std::max(newest_received_, ack->transmission);
  if (first_ >= round_end_) {
    ++round_;
    round_end_ = next_;
  }
  const bool repairing = first_ < repaired_at_;
  if (newly > 0) {
    backoff_ = 0;
    if (!repairing)
      law_->on_ack({.now = now,
                    .rtt = now - ack->sent,
                    .round = round_,
                    .acked = newly,
                    .window_limited = window_limited_});
  }
  find_losses(now);
  if (newly > 0) timeout_at_ = segments_.empty() ? std::nullopt : std::optional(now + timeout());
}

void TcpSender::measure_rtt(Duration rtt) {
  rtt_ms_.add(std::chrono::duration<double, std::milli>(rtt).count());
  if (smoothed_ == Duration{0}) {
    smoothed_ = rtt;
    variation_ = rtt / 2;
    return;
  }
  const Duration off = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
  variation_ = (3 * variation_ + off) / 4;
  smoothed_ = (7 * smoothed_ + rtt) / 8;
}

Duration TcpSender::timeout() const {
  if (smoothed_ == Duration{0}) return 1s;
  return smoothed_ + std::max(kLeastTimeout, 4 * variation_);
}

std::optional<TimePoint> TcpSender::next_timeout() const {
  if (next_ == 0 && segments_.empty()) return config_.start;
  return timeout_at_;
}

void TcpSender::on_timeout(TimePoint now) {
  if (!timeout_at_ || *timeout_at_ > now) return;
  ++counters_.timeouts;
  law_->on_timeout(now);
  to_repeat_.clear();
  for (std::uint64_t number = first_; number < next_; ++number) {
    Segment& each = segment(number);
    if (each.state == State::received) continue;
    each.state = State::lost;
    to_repeat_.push_back(number);
  }
  in_flight_ = 0;
  sendings_.clear();
  // Slow start goes on while the rest is repaired (RFC 5681, section 3.1); nothing of it counts as new loss.
  repaired_at_ = first_;
  backoff_ = std::min(backoff_ + 1, 8);
  timeout_at_ = now + std::min<Duration>(timeout() * (1 << backoff_), 120s);
}

void TcpSender::send(std::uint64_t number, Outbox& out, TimePoint now) {
  Segment& sent = segment(number);
  sent.transmission = ++transmissions_;
  sent.state = State::in_flight;
  ++in_flight_;
  ++counters_.sent;
  sendings_.push_back({sent.transmission, number});
  const TcpHeader header{.number = number, .transmission = sent.transmission, .sent = now};
  out.send(config_.to, std::as_bytes(std::span(&header, 1)), config_.ip_bytes);
  if (!timeout_at_) timeout_at_ = now + timeout();
}

void TcpSender::transmit(Outbox& out, TimePoint now) {
  if (now < config_.start) return;
  while (static_cast<double>(in_flight_) + 1 <= std::max(1.0, law_->window())) {
    if (!to_repeat_.empty()) {
      const std::uint64_t number = to_repeat_.front();
      to_repeat_.pop_front();
      if (number < first_ || segment(number).state != State::lost) continue;
      ++counters_.retransmitted;
      send(number, out, now);
      continue;
    }
    if (next_ - first_ >= config_.most_in_flight || (config_.segments && next_ == config_.segments)) {
      window_limited_ = false;
      return;
    }
    segments_.emplace_back();
    send(next_++, out, now);
  }
  window_limited_ = true;
}

// ---- Receiver

void TcpReceiver::add(std::uint64_t number) {
  auto after = islands_.upper_bound(number);
  if (after != islands_.begin() && std::prev(after)->second >= number) {
    auto island = std::prev(after);
    if (island->second > number) return;
    island->second = number + 1;
    if (after != islands_.end() && after->first == number + 1) {
      island->second = after->second;
      islands_.erase(after);
    }
  } else if (after != islands_.end() && after->first == number + 1) {
    auto island = islands_.extract(after);
    island.key() = number;
    islands_.insert(std::move(island));
  } else {
    islands_.emplace(number, number + 1);
  }
  recent_.push_front(number);
  if (recent_.size() > 16) recent_.pop_back();
}

void TcpReceiver::receive(Datagram& datagram, TimePoint now) {
  const auto header = header_of(datagram);
  if (!header || header->is_ack) return;
  peer_ = datagram.from;
  newest_transmission_ = std::max(newest_transmission_, header->transmission);
  // RFC 7323, section 4.3: an ACK that was held back gives back the time of the first segment it is for.
  if (unacknowledged_ == 0) echo_ = header->sent;
  ++unacknowledged_;
  if (header->number == next_) {
    const std::uint64_t before = next_++;
    ack_now_ |= !islands_.empty();
    if (!islands_.empty() && islands_.begin()->first == next_) {
      next_ = islands_.begin()->second;
      islands_.erase(islands_.begin());
    }
    meter_.add(now, (next_ - before) * segment_bytes_);
  } else {
    ack_now_ = true;
    if (header->number > next_) add(header->number);
  }
  if (unacknowledged_ >= 2) ack_now_ = true;
  if (!ack_at_) ack_at_ = now + kDelayedAck;
}

void TcpReceiver::transmit(Outbox& out, TimePoint) {
  if (!ack_now_) return;
  TcpHeader ack{.is_ack = true, .transmission = newest_transmission_, .sent = echo_, .acked = next_};
  const auto say = [&](std::uint64_t first, std::uint64_t end) {
    if (ack.ranges < ack.received.size()) ack.received[ack.ranges++] = {first, end};
  };
  if (!recent_.empty() && recent_.front() >= next_) say(recent_.front(), recent_.front() + 1);
  std::uint64_t last = ~std::uint64_t{0};
  for (const std::uint64_t number : recent_) {
    auto island = islands_.upper_bound(number);
    if (number < next_ || island == islands_.begin()) continue;
    --island;
    if (island->first != last) say(island->first, island->second);
    last = island->first;
  }
  if (islands_.empty()) recent_.clear();
  out.send(peer_, std::as_bytes(std::span(&ack, 1)), kAckIpBytes + (ack.ranges ? 4 + 8u * ack.ranges : 0));
  unacknowledged_ = 0;
  ack_now_ = false;
  ack_at_.reset();
}

}  // namespace longhaul::simulator
