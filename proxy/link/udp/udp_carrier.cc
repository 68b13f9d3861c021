// SPDX-License-Identifier: Apache-2.0
// What happens over time and what is heard. How packets are made is in udp_carrier_send.cc.
#include "proxy/link/udp/udp_carrier.h"

#include <openssl/rand.h>

#include <cstring>

#include "proxy/link/udp/paced_law.h"

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstProbeInterval = 100ms;
constexpr Duration kMinPatience = 1s;  // without a word on what was sent, until the path counts as dead
// A path that was never up is given up after so many of these.
constexpr int kProbingPatience = 3;
constexpr Duration kChallengeInterval = 200ms;
constexpr std::size_t kUnsentMin = 64 * 1024, kUnsentMax = 4 << 20;
constexpr Duration kUnsentTime = 20ms;

std::size_t bytes_in(Duration time, std::uint64_t bytes_per_second) {
  return static_cast<std::size_t>(std::chrono::duration<double>(time).count() *
                                  static_cast<double>(bytes_per_second));
}

bool unknown(const UdpAddress& address) { return address.port() == 0; }

// An endpoint of both families shows IPv4 peers as mapped addresses.
IpFamily family(const UdpAddress& address) {
  return address.address().is_v6() && !address.address().to_v6().is_v4_mapped() ? IpFamily::v6 : IpFamily::v4;
}

// 8 of UDP, 20 or 40 of IP.
std::uint32_t head_bytes(const UdpAddress& peer) {
  return peer.address().is_v6() && !peer.address().to_v6().is_v4_mapped() ? 48 : 28;
}

// Compares what the kernel gave, which is nearly always the same, before what it means.
bool same(const UdpAddress& a, const UdpAddress& b) {
  return (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0) || a == b;
}

}  // namespace

UdpCarrier::UdpCarrier(UdpCarrierConfig config, Session& session, TimePoint now)
    : config_(std::move(config)),
      head_bytes_(head_bytes(config_.peer)),
      session_(session),
      id_(config_.new_carrier()),
      last_now_(now),
      sealer_(config_.keys.sent_by(config_.side), config_.cipher, config_.limits),
      opener_(config_.keys.received_by(config_.side), config_.cipher, config_.limits),
      received_(now),
      sent_(now),
      mtu_(family(config_.peer)),
      pacer_(now, 1, ip_bytes(PathMtu::kBase)) {
  session_.attach(id_, now, {}, false);
  start_law(now);
  probe(now);
}

UdpCarrier::~UdpCarrier() { session_.detach(id_, last_now_); }

void UdpCarrier::set_peer(const UdpAddress& peer) {
  config_.peer = peer;
  head_bytes_ = head_bytes(peer);
}

void UdpCarrier::start_law(TimePoint now) {
  Duration rtt = sent_.rtt().measured() ? sent_.rtt().smoothed()
                 : config_.path         ? config_.path->min_rtt
                                        : RttEstimator::kInitial;
  // Links that share a line must not look for more of it at the same moments.
  std::uint64_t seed = 0;
  std::memcpy(&seed, own_id().bytes.data(), std::min(sizeof seed, own_id().bytes.size()));
  measured_ = nullptr;
  if (config_.rate_bits) {
    law_ = std::make_unique<PacedLaw>(PacedConfig{.rate = config_.rate_bits / 8,
                                                  .initial_rtt = rtt,
                                                  .packet_bytes = ip_bytes(mtu_.current()),
                                                  .seed = seed},
                                      now);
  } else {
    auto law = std::make_unique<MeasuredLaw>(MeasuredConfig{.memory = config_.path,
                                                            .initial_rtt = rtt,
                                                            .packet_bytes = ip_bytes(mtu_.current()),
                                                            .max_rate = config_.most_bits / 8,
                                                            .seed = seed},
                                             now);
    measured_ = law.get();
    law_ = std::move(law);
  }
  follow_law(now);
}

void UdpCarrier::follow_law(TimePoint now) {
  pacer_.set_rate(now, law_->pacing_rate());
  pacer_.set_packet_bytes(ip_bytes(mtu_.current()));
  if (session_.preferred() != id_) return;
  session_.set_unsent_limit(std::clamp(bytes_in(kUnsentTime, law_->pacing_rate()), kUnsentMin, kUnsentMax));
  session_.set_line_rate(law_->pacing_rate());
}

void UdpCarrier::set_rate(std::uint64_t rate_bits, std::uint64_t most_bits, TimePoint now) {
  if (rate_bits == config_.rate_bits && most_bits == config_.most_bits) return;
  config_.path = path_memory();
  config_.rate_bits = rate_bits;
  config_.most_bits = most_bits;
  start_law(now);
}

std::optional<PathMemory> UdpCarrier::path_memory() const {
  return measured_ ? measured_->memory() : config_.path;
}

Duration UdpCarrier::smoothed_rtt() const { return sent_.rtt().smoothed(); }
std::uint64_t UdpCarrier::pacing_rate_bits() const { return 8 * law_->pacing_rate(); }

Duration UdpCarrier::patience() const { return std::max<Duration>(kMinPatience, 4 * sent_.rtt().smoothed()); }

// -------------------------------------------------------------------------------------------- whether it
// works

void UdpCarrier::probe(TimePoint now) {
  last_now_ = now;
  if (keys_worn_out_) return;
  if (state_ == State::up) {
    ++probes_owed_;
    return;
  }
  state_ = State::probing;
  probe_at_ = now;
  probe_interval_ = kFirstProbeInterval;
  probing_until_ = now + kProbingPatience * patience();
}

void UdpCarrier::prefer(TimePoint now) {
  last_now_ = now;
  if (session_.preferred() != id_) sent_.on_idle();  // another carrier had what there was to send
  session_.prefer(id_, now);
  follow_law(now);
}

void UdpCarrier::came_up(TimePoint now) {
  // A late word on what was given up does not count.
  if (state_ != State::probing) return;
  state_ = State::up;
  probe_at_.reset();
  awaiting_since_.reset();
  follow_law(now);
}

void UdpCarrier::fail(TimePoint now) {
  state_ = State::failed;
  probe_at_.reset();
  send_at_.reset();
  data_at_.reset();
  awaiting_since_.reset();
  newest_data_.reset();
  probes_owed_ = 0;
  sent_.abandon(events_);
  for (const PacketFate& fate : events_.lost) lose(fate, now);
  // What the peer still sends is taken, under a new name: the old one is lost with all that it carried.
  session_.detach(id_, now);
  id_ = config_.new_carrier();
  session_.attach(id_, now, {}, false);
}

void UdpCarrier::wear_out(TimePoint now) {
  keys_worn_out_ = true;
  if (state_ != State::failed) fail(now);
}

std::optional<TimePoint> UdpCarrier::next_timeout() const {
  if (unknown(config_.peer) || keys_worn_out_) return std::nullopt;
  std::optional<TimePoint> next = sent_.next_timeout();
  auto sooner = [&](std::optional<TimePoint> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  sooner(ack_at());
  sooner(probe_at_);
  if (state_ == State::probing) sooner(probing_until_);
  if (state_ == State::up) {
    sooner(send_at_);
    sooner(mtu_.next_timeout(last_now_));
    // What is due already waits for room, and not for a time.
    if (auto order = fec_.next_timeout(); order && *order > last_now_) sooner(order);
    if (awaiting_since_) sooner(*awaiting_since_ + patience());
  }
  return next;
}

void UdpCarrier::on_timeout(TimePoint now) {
  last_now_ = now;
  if (auto due = sent_.next_timeout(); due && *due <= now) {
    sent_.on_timeout(now, events_);
    // A host that stands still for some milliseconds is no path that swallows large packets.
    if (events_.probes && awaiting_since_ &&
        now - *awaiting_since_ >= sent_.rtt().probe_timeout(SentPackets::kMaxAckDelay))
      mtu_.on_timeout();
    settle(now);
  }
  if (state_ == State::up && awaiting_since_ && now >= *awaiting_since_ + patience()) fail(now);
  // An acceptor waits for the first packet, however long that takes.
  if (state_ == State::probing && !unknown(config_.peer) && now >= probing_until_) fail(now);
}

// -------------------------------------------------------------------------------------------------- what is
// heard

Result<void> UdpCarrier::receive(MutableBytes datagram, const UdpAddress& from, TimePoint arrived,
                                 TimePoint now) {
  last_now_ = now;
  arrived_ = arrived;
  auto opened = opener_.open(datagram, now);
  if (!opened) {
    ++counters_.packets_dropped;
    if (opened.error() == PacketError::keys_worn_out) wear_out(now);
    return {};
  }
  ++counters_.packets_received;
  counters_.bytes_received += datagram.size();
  note_address(from, opened->number, now);
  heard_from_ = from;
  end_received_ = std::max(end_received_, opened->number + 1);
  AckAsk ask = AckAsk::none;
  auto taken = take_frames(opened->payload, opened->number, false, ask, now);
  received_.on_packet(opened->number, ask, now, arrived);
  if (taken) taken = take_restored(ask, now);
  if (taken) return {};
  // Streams may have lost bytes that were acknowledged already: nothing may go on from here.
  session_.abandon(now);
  return taken;
}

void UdpCarrier::note_address(const UdpAddress& from, PacketNumber number, TimePoint now) {
  if (same(from, config_.peer)) return;
  if (unknown(config_.peer)) {
    set_peer(from);
    mtu_ = PathMtu(family(from));
    if (state_ != State::up) probe(now);
    return;
  }
  // Only the newest packet says where the peer is; it may have been sent on by somebody else, so the peer is
  // asked.
  if (number < end_received_) return;
  if (challenged_at_ && now - *challenged_at_ < kChallengeInterval) return;
  // The same question again while question or answer may be lost, or under way.
  if (candidate_ != from) {
    PathToken token;
    if (RAND_bytes(reinterpret_cast<unsigned char*>(token.data()), sizeof token) != 1) return;
    challenge_ = token;
    candidate_ = from;
  }
  challenged_at_ = now;
  challenge_due_ = true;
}

Result<void> UdpCarrier::take_frames(Bytes payload, PacketNumber number, bool restored, AckAsk& ask,
                                     TimePoint now) {
  Bytes sessions;  // frames of the session that follow each other
  auto flush = [&]() -> Result<void> {
    if (sessions.empty()) return {};
    ask = std::max(ask, AckAsk::soon);
    return session_.receive(id_, std::exchange(sessions, {}), now);
  };
  for (Bytes rest = payload; !rest.empty();) {
    auto size = frame_size(rest);
    if (!size) return size.error();
    if (!*size || **size > rest.size()) return LinkError::malformed_frame;
    Bytes frame = rest.first(**size);
    rest = rest.subspan(frame.size());
    if (!is_carrier_frame(frame.front())) {
      sessions = Bytes(sessions.empty() ? frame.data() : sessions.data(), sessions.size() + frame.size());
      continue;
    }
    if (restored) return LinkError::malformed_frame;  // only the session's are protected
    if (auto flushed = flush(); !flushed) return flushed;
    ByteReader in(frame.subspan(1));
    Bytes body = *in.sized();
    auto taken =
        take_carrier_frame(static_cast<CarrierFrameType>(frame.front()), body, rest, number, ask, now);
    if (!taken) return taken;
  }
  return flush();
}

Result<void> UdpCarrier::take_carrier_frame(CarrierFrameType type, Bytes body, Bytes behind,
                                            PacketNumber number, AckAsk& ask, TimePoint now) {
  switch (type) {
    case CarrierFrameType::packet_ack: {
      auto ack = parse_packet_ack(body);
      if (!ack) return ack.error();
      if (auto taken = sent_.on_ack(*ack, arrived_, now, events_); !taken) return taken;
      sealer_.on_acknowledged(ack->largest());
      settle(now);
      return {};
    }
    case CarrierFrameType::probe:
      ask = AckAsk::at_once;
      // It works again, as far as the peer can tell.
      if (state_ == State::failed) probe(now);
      return {};
    case CarrierFrameType::path_challenge: {
      auto token = parse_path_token(body);
      if (!token) return token.error();
      ask = AckAsk::at_once;
      response_ = {*token, heard_from_};
      return {};
    }
    case CarrierFrameType::path_response: {
      auto token = parse_path_token(body);
      if (!token) return token.error();
      ask = std::max(ask, AckAsk::soon);
      if (!challenge_ || *token != *challenge_) return {};
      set_peer(*candidate_);
      candidate_.reset();
      challenge_.reset();
      challenge_due_ = false;
      mtu_.restart();
      return {};
    }
    case CarrierFrameType::symbol: {
      auto symbol = parse_symbol(body);
      if (!symbol) return symbol.error();
      fec_.on_symbol(*symbol, number, behind);
      return {};
    }
    case CarrierFrameType::repair: {
      auto repair = parse_repair(body);
      if (!repair) return repair.error();
      ask = std::max(ask, AckAsk::soon);
      fec_.on_repair(*repair);
      return {};
    }
    case CarrierFrameType::recovered: {
      auto numbers = parse_recovered(body);
      if (!numbers) return numbers.error();
      for (PacketNumber restored : *numbers)
        if (auto content = sent_.content_in_flight(restored)) contents_[*content].restored = true;
      return {};
    }
    case CarrierFrameType::padding:
      return {};
  }
  return {};  // of a later version
}

Result<void> UdpCarrier::take_restored(AckAsk& ask, TimePoint now) {
  while (auto restored = fec_.poll_restored(end_received_)) {
    // The number is read back from its low half: a wrong guess only costs a retransmission.
    if (recovered_.size() < recovered_.capacity()) recovered_.push_back(restored->number);
    if (auto taken = take_frames(restored->frames, restored->number, true, ask, now); !taken) return taken;
  }
  return {};
}

// What an ACK or a timer told is drawn upon.
void UdpCarrier::settle(TimePoint now) {
  fec::LossReport report;
  for (const PacketFate& fate : events_.acked) {
    if (fate.kind == PacketKind::ack_only) {
      received_.on_ack_acknowledged(decode_packet_number(end_received_, fate.content));
      continue;
    }
    SentContent& content = contents_[fate.content];
    if (fate.kind == PacketKind::mtu_probe) {
      mtu_probe_bytes_ -= ip_bytes(content.datagram_bytes);
      mtu_.on_probe_acked(content.datagram_bytes, now);
    } else {
      mtu_.on_packet_acked(content.datagram_bytes);
      ++report.delivered;
    }
    if (content.ack) received_.on_ack_acknowledged(*content.ack);
    release(fate.content);
  }
  std::optional<PacketNumber> before;
  for (const PacketFate& fate : events_.lost) {
    if (fate.kind == PacketKind::data) {
      ++report.lost;
      if (!before || fate.number != *before + 1) ++report.bursts;
      before = fate.number;
    }
    lose(fate, now);
  }
  if (!events_.acked.empty()) {
    came_up(now);
    awaiting_since_ = sent_.packets_in_flight() ? std::optional(now) : std::nullopt;
    opener_.keep_previous_keys(3 * sent_.rtt().probe_timeout(SentPackets::kMaxAckDelay));
    received_.set_round_trip(sent_.rtt().smoothed());
  }
  events_.sample.full_packet_bytes = ip_bytes(mtu_.current());
  law_->on_sample(events_.sample);
  follow_law(now);
  if (const auto& delivery = events_.sample.delivery; delivery && delivery->interval > Duration{0}) {
    auto rate = static_cast<std::uint64_t>(static_cast<double>(delivery->delivered_bytes) /
                                           std::chrono::duration<double>(delivery->interval).count());
    if (!delivery->application_limited || rate > delivery_rate_)
      delivery_rate_ = delivery_rate_ ? (7 * delivery_rate_ + rate) / 8 : rate;
  }
  const RttEstimator& rtt = sent_.rtt();
  report.queue_stood = rtt.latest() - rtt.minimum() > std::max<Duration>(8ms, rtt.minimum() / 8);
  if (report.delivered || report.lost) fec_.on_report(report, rtt.smoothed(), now);
  if (events_.probes) {
    probes_owed_ = std::max(probes_owed_, events_.probes);
    // Rather than ask only, the newest goes once more: mostly it is what is missing.
    if (newest_data_ && state_ == State::up) {
      SentContent& content = contents_[*newest_data_];
      PacketContent ranges{.ranges = content.frames.ranges, .control = {}};
      session_.on_lost(content.carrier, ranges, now);
    }
  }
}

void UdpCarrier::lose(const PacketFate& fate, TimePoint now) {
  if (fate.kind == PacketKind::ack_only) return;
  SentContent& content = contents_[fate.content];
  if (fate.kind == PacketKind::mtu_probe) {
    mtu_probe_bytes_ -= ip_bytes(content.datagram_bytes);
    mtu_.on_probe_lost(content.datagram_bytes, now);
  } else {
    mtu_.on_packet_lost(content.datagram_bytes);
    if (!content.restored) session_.on_lost(content.carrier, content.frames, now);
  }
  release(fate.content);
}

void UdpCarrier::release(PacketContents::Handle handle) {
  if (newest_data_ == handle) newest_data_.reset();
  contents_.give_back(handle);
}

void UdpCarrier::on_too_large(std::size_t datagram_bytes, TimePoint now) {
  mtu_.on_too_large(datagram_bytes, now);
  follow_law(now);
}

void UdpCarrier::set_fec(const config::Features& features) { fec_mode_ = mode_of(features.fec); }

UdpCounters UdpCarrier::counters() const {
  UdpCounters counters = counters_;
  counters.packets_lost = sent_.counters().lost_packets;
  counters.spurious_losses = sent_.counters().spurious_losses;
  auto fec = fec_.counters();
  counters.symbols_recovered = fec.recovered;
  counters.repairs_received = fec.repairs;
  counters.repairs_wasted = fec.wasted;
  counters.repairs_late = fec.late;
  return counters;
}

}  // namespace longhaul::link::udp
