// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/udp_carrier.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kUnsentMin = 64 * 1024, kUnsentMax = 4 << 20;
constexpr Duration kUnsentTime = 20ms;
constexpr std::uint64_t kWorkPerDatagram = 1000;

std::uint64_t seed_of(const ConnectionId& id) {
  std::uint64_t seed = 0;
  std::memcpy(&seed, id.bytes.data(), std::min(sizeof seed, id.bytes.size()));
  return seed;
}

}  // namespace

UdpCarrier::UdpCarrier(UdpCarrierConfig config, Session& session, TimePoint now)
    : new_carrier_(std::move(config.new_carrier)),
      session_(session),
      id_(new_carrier_()),
      last_now_(now),
      sealer_(config.keys.sent_by(config.side), config.cipher, config.limits),
      opener_(config.keys.received_by(config.side), config.cipher, config.limits),
      address_(config.peer),
      received_(now),
      flight_(family(config.peer), head_bytes(config.peer), now),
      rate_({config.settings.rate_bits, config.settings.most_bits, config.path, seed_of(own_id())},
            flight_.full_packet(), now),
      maker_(sealer_, session.outgoing(), flight_, received_, fec_, rate_, health_),
      batches_(maker_, flight_, address_, health_),
      reader_(*this, session, sealer_, flight_, address_, fec_, maker_) {
  maker_.set_fec_mode(mode_of(config.settings.fec));
  maker_.set_carrier(id_);
  reader_.set_carrier(id_);
  session_.attach(id_, now, {}, false);
  probe(now);
}

UdpCarrier::~UdpCarrier() { session_.detach(id_, last_now_); }

// ----------------------------------------------------------------------------------------------- the rate

void UdpCarrier::tell_line_rate() {
  if (session_.preferred() != id_) return;
  Outgoing& outgoing = session_.outgoing();
  const std::uint64_t rate = rate_.bytes_per_second() + outgoing.helpers().rate;
  // A stream asks for more when half of it is sent: there must be enough for helpers until then.
  const double unsent = std::chrono::duration<double>(kUnsentTime).count() * static_cast<double>(rate) +
                        2 * static_cast<double>(outgoing.helpers().backlog);
  outgoing.set_unsent_limit(std::clamp(static_cast<std::size_t>(unsent), kUnsentMin, kUnsentMax));
  outgoing.set_line_rate(rate);
}

void UdpCarrier::set(const UdpSettings& settings, TimePoint now) {
  maker_.set_fec_mode(mode_of(settings.fec));
  const auto measured = rtt().measured() ? std::optional(rtt().smoothed()) : std::nullopt;
  if (rate_.set(settings.rate_bits, settings.most_bits, measured, flight_.full_packet(), now))
    tell_line_rate();
}

void UdpCarrier::on_too_large(std::size_t datagram_bytes, TimePoint now) {
  flight_.mtu().on_too_large(datagram_bytes, now);
  rate_.set_packet_bytes(flight_.full_packet(), now);
  tell_line_rate();
}

// ------------------------------------------------------------------------------------ whether it works

void UdpCarrier::probe(TimePoint now) {
  last_now_ = now;
  if (keys_worn_out_) return;
  if (state() == State::up) {
    maker_.owe_probe();
  } else {
    health_.begin_probing(now, rtt().smoothed());
  }
}

void UdpCarrier::prefer(TimePoint now) {
  last_now_ = now;
  if (session_.preferred() != id_) flight_.sent().on_idle();  // another carrier sent what there was
  session_.prefer(id_, now);
  rate_.set_packet_bytes(flight_.full_packet(), now);
  tell_line_rate();
}

void UdpCarrier::give_way(TimePoint now) {
  last_now_ = now;
  fail(now);
  probe(now);
}

void UdpCarrier::fail(TimePoint now) {
  health_.fail();
  overdue_.forget();
  maker_.on_failed();
  flight_.abandon(session_.outgoing(), now);
  // What the peer still sends is taken, under a new name: the old one is lost with all that it carried.
  session_.detach(id_, now);
  id_ = new_carrier_();
  maker_.set_carrier(id_);
  reader_.set_carrier(id_);
  session_.attach(id_, now, {}, false);
}

void UdpCarrier::give_up(TimePoint now) {
  flight_.mtu().on_failed();
  fail(now);
}

void UdpCarrier::on_outdone(TimePoint now) {
  last_now_ = now;
  health_.on_outdone();
  if (health_.is_dead(now, rtt().smoothed())) give_up(now);
}

void UdpCarrier::wear_out(TimePoint now) {
  keys_worn_out_ = true;
  if (state() != State::failed) fail(now);
}

std::optional<TimePoint> UdpCarrier::next_timeout() const {
  if (!address_.known() || keys_worn_out_) return std::nullopt;
  std::optional<TimePoint> next = flight_.sent().next_timeout();
  auto sooner = [&](std::optional<TimePoint> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  sooner(maker_.ack_at());
  sooner(health_.next_timeout(rtt().smoothed()));
  sooner(overdue_.next_timeout(last_now_));
  if (state() == State::up) {
    sooner(maker_.send_at());
    sooner(flight_.mtu().next_timeout(last_now_));
    // What is due already waits for room, and not for a time.
    if (auto order = fec_.next_timeout(); order && *order > last_now_) sooner(order);
  }
  return next;
}

void UdpCarrier::on_timeout(TimePoint now) {
  last_now_ = now;
  if (auto due = flight_.sent().next_timeout(); due && *due <= now) {
    flight_.on_timeout(now);
    // A host that stands still for some milliseconds is no path that drops large packets.
    if (flight_.events().probes && health_.waits_for(rtt().probe_timeout(SentPackets::kMaxAckDelay), now))
      flight_.mtu().on_timeout();
    settle(now);
  }
  health_.on_timeout(now, rtt().smoothed());
  // An acceptor waits for the first packet, however long that takes.
  if ((state() == State::up || address_.known()) && health_.is_dead(now, rtt().smoothed())) give_up(now);
}

void UdpCarrier::on_stall(Duration stall, TimePoint now) {
  health_.leave_out(stall, now);
  overdue_.leave_out(stall, now);
}

// ---------------------------------------------------------------------------------------- what arrives

Result<void> UdpCarrier::receive(MutableBytes datagram, const UdpAddress& from, TimePoint now,
                                 std::optional<TimePoint> arrived) {
  last_now_ = now;
  count_work(kWorkPerDatagram);
  auto opened = opener_.open(datagram, now);
  if (!opened) {
    ++counters_.packets_dropped;
    if (opened.error() == PacketError::keys_worn_out) wear_out(now);
    return {};
  }
  ++counters_.packets_received;
  counters_.bytes_received += datagram.size();
  if (health_.on_heard(now, rtt().smoothed()) && state() == State::up) maker_.owe_probes(2);
  note_address(from, opened->number, now);
  end_received_ = std::max(end_received_, opened->number + 1);
  AckAsk ask = AckAsk::none;
  auto taken = reader_.read({opened->payload, opened->number, from, arrived.value_or(now)}, ask, now);
  received_.on_packet(opened->number, ask, now, arrived.value_or(now));
  if (taken) taken = reader_.read_restored(end_received_, ask, now);
  if (taken) return {};
  // Streams may have lost acknowledged bytes: the session must not continue.
  session_.abandon(now);
  return taken;
}

void UdpCarrier::note_address(const UdpAddress& from, PacketNumber number, TimePoint now) {
  using Age = PeerAddress::Age;
  if (!address_.note(from, number < end_received_ ? Age::older : Age::newest, now)) return;
  flight_.use_path(family(from), head_bytes(from));
  if (state() != State::up) probe(now);
}

// Acts on the results of an ACK or a timer.
void UdpCarrier::settle(TimePoint now) {
  SentEvents& events = flight_.events();
  const fec::LossReport report = flight_.settle(received_, end_received_, session_.outgoing(), now);
  overdue_.note(!events.acked.empty(), now);
  if (!events.acked.empty()) {
    // Small packets may pass where large ones do not.
    if (flight_.large().acknowledged && health_.on_acknowledged())
      rate_.set_packet_bytes(flight_.full_packet(), now);
    health_.wait_anew(flight_.sent().packets_in_flight() > 0, now);
    opener_.keep_previous_keys(3 * rtt().probe_timeout(SentPackets::kMaxAckDelay));
    received_.set_round_trip(rtt().smoothed());
  }
  health_.on_large(flight_.large().acknowledged, flight_.large().lost, now);
  rate_.on_sample(events.sample, now);
  tell_line_rate();
  if (report.delivered || report.lost) fec_.on_report(report, rtt().smoothed(), now);
  if (!events.probes) return;
  maker_.owe_probes(events.probes);
  // Rather than only ask, the newest packet is sent once more.
  if (state() == State::up) flight_.repeat_newest(session_.outgoing(), now);
}

// It works again, as far as the peer can tell.
void UdpCarrier::on_probed(TimePoint now) {
  if (state() == State::failed) probe(now);
}

// ----------------------------------------------------------------------------------------------- what leaves

bool UdpCarrier::transmit(DatagramBatch& batch, TimePoint now) {
  last_now_ = now;
  batch.clear();
  maker_.begin_batch();
  if (!address_.known() || keys_worn_out_) return false;
  batches_.make(batch, now);
  if (maker_.keys_worn_out() && !keys_worn_out_) wear_out(now);
  overdue_.note(false, now);
  return !batch.bytes.empty();
}

UdpCounters UdpCarrier::counters() const {
  UdpCounters counters = counters_;
  counters.packets_sent = maker_.packets_sent();
  counters.bytes_sent = maker_.bytes_sent();
  counters.repairs_sent = maker_.repairs_sent();
  counters.packets_lost = flight_.sent().counters().lost_packets;
  counters.spurious_losses = flight_.sent().counters().spurious_losses;
  const auto fec = fec_.counters();
  counters.symbols_recovered = fec.recovered;
  counters.repairs_received = fec.repairs;
  counters.repairs_wasted = fec.wasted;
  counters.repairs_late = fec.late;
  return counters;
}

}  // namespace longhaul::link::udp
