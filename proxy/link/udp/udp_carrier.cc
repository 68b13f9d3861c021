// SPDX-License-Identifier: Apache-2.0
// The carrier's life over time. udp_carrier_receive.cc handles received packets, udp_carrier_send.cc makes
// them.
#include "proxy/link/udp/udp_carrier.h"

#include <cstring>

#include "proxy/link/udp/paced_law.h"
#include "proxy/link/udp/udp_addresses.h"

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstProbeInterval = 100ms;
constexpr Duration kMinPatience = 1s;  // without any acknowledgement, until the path counts as dead
// A path that was never up is given up after so many of these.
constexpr int kProbingPatience = 3;
constexpr std::size_t kUnsentMin = 64 * 1024, kUnsentMax = 4 << 20;
constexpr Duration kUnsentTime = 20ms;

std::size_t bytes_in(Duration time, std::uint64_t bytes_per_second) {
  return static_cast<std::size_t>(std::chrono::duration<double>(time).count() *
                                  static_cast<double>(bytes_per_second));
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
  // Links that share a line must not probe for a higher rate at the same time.
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
  session_.outgoing().set_unsent_limit(
      std::clamp(bytes_in(kUnsentTime, law_->pacing_rate()), kUnsentMin, kUnsentMax));
  session_.outgoing().set_line_rate(law_->pacing_rate());
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
  if (session_.preferred() != id_) sent_.on_idle();  // another carrier had the data to send
  session_.prefer(id_, now);
  follow_law(now);
}

void UdpCarrier::came_up(TimePoint now) {
  // A late acknowledgement of abandoned packets does not count.
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
  // The peer's packets are still accepted, under a new carrier number: the old one is lost with all that it
  // carried.
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
    // Anything already due waits for room, not for a time.
    if (auto order = fec_.next_timeout(); order && *order > last_now_) sooner(order);
    if (awaiting_since_) sooner(*awaiting_since_ + patience());
  }
  return next;
}

void UdpCarrier::on_timeout(TimePoint now) {
  last_now_ = now;
  if (auto due = sent_.next_timeout(); due && *due <= now) {
    sent_.on_timeout(now, events_);
    // A host that stalls for some milliseconds is not a path that drops large packets.
    if (events_.probes && awaiting_since_ &&
        now - *awaiting_since_ >= sent_.rtt().probe_timeout(SentPackets::kMaxAckDelay))
      mtu_.on_timeout();
    settle(now);
  }
  if (state_ == State::up && awaiting_since_ && now >= *awaiting_since_ + patience()) fail(now);
  // An acceptor waits for the first packet, however long that takes.
  if (state_ == State::probing && !unknown(config_.peer) && now >= probing_until_) fail(now);
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
