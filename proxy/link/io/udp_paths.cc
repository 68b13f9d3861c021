// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_paths.h"

#include <boost/asio/post.hpp>

#include "proxy/log/log.h"

namespace longhaul::link::udp {
namespace asio = boost::asio;
using namespace std::chrono_literals;
namespace {

using State = UdpCarrier::State;

// A path that failed is tried again soon, then less and less often: a probe costs little, and a change to a
// path that fails again costs a second without data. Soon again after it has carried for a minute.
constexpr Duration kFirstRetry = 1s, kLaterRetry = 15s, kLatestRetry = 60s;
// Keys of an older connection: how long they still receive data under way once newer ones carry, and how long
// they wait for newer ones.
constexpr Duration kLinger = 5s, kOldest = 60s;
// Without a control connection we cannot learn of new keys, nor of the peer's end.
constexpr Duration kAloneLimit = 60s;
constexpr std::size_t kMostPaths = 4;
// On a line with a shorter round trip TCP repairs a loss before it is noticed, and costs half as much: `auto`
// leaves it to TCP, unless the rate is configured. To leave a line in use, it must be clearly shorter. Delays
// caused by TCP itself are not part of the line's length, so the minimum over a minute counts.
constexpr Duration kShortLine = 2ms, kClearlyShort = 1500us;
// While TCP carries, a working path is probed this often: NATs keep their mapping, and the path is known to
// work when it is needed.
constexpr Duration kStandbyProbe = 15s;
// A peer that did not answer over UDP for so long, while TCP works, will not.
constexpr Duration kAnswerLimit = 10s;

UdpState state_of(State state) {
  switch (state) {
    case State::probing:
      return UdpState::probing;
    case State::up:
      return UdpState::up;
    case State::failed:
      return UdpState::failed;
  }
  return UdpState::none;
}

std::string text_of(const UdpAddress& address) {
  if (address.port() == 0) return {};
  auto shown = address.address();
  if (shown.is_v6() && shown.to_v6().is_v4_mapped())  // an IPv4 peer at an endpoint of both families
    shown = asio::ip::make_address_v4(asio::ip::v4_mapped, shown.to_v6());
  const std::string host = shown.to_string();
  return (shown.is_v6() ? "[" + host + "]:" : host + ":") + std::to_string(address.port());
}

}  // namespace

UdpPaths::UdpPaths(asio::io_context& io, std::string peer, CarrierOwner& owner)
    : io_(io),
      peer_(std::move(peer)),
      owner_(owner),
      retry_after_(kFirstRetry),
      most_retry_(kLaterRetry),
      timer_(io),
      self_(std::make_shared<UdpPaths*>(this)) {}

UdpPaths::~UdpPaths() { *self_ = nullptr; }

UdpEndpoint* UdpPaths::dialling_endpoint(bool v6) {
  auto& endpoint = v6 ? dial_v6_ : dial_v4_;
  if (endpoint) return endpoint.get();
  const UdpAddress any(v6 ? asio::ip::udp::v6() : asio::ip::udp::v4(), 0);
  auto opened = UdpEndpoint::open(io_, any, UdpEndpoint::Answers::by_route);
  if (!opened) {
    log::warn("udp_socket", {{"peer", peer_}, {"reason", opened.error().message()}});
    return nullptr;
  }
  endpoint = std::move(*opened);
  return endpoint.get();
}

void UdpPaths::begin(UdpEndpoint& endpoint, UdpCarrierConfig config, Session& session) {
  const TimePoint now = Clock::now();
  session_ = &session;
  if (!begun_) begun_ = now;
  config.rate_bits = rate_bits_;
  config.most_bits = most_bits_;
  memory_ = memory();
  config.path = memory_;
  for (auto& old : paths_)
    if (!old.ends) old.ends = now + kOldest;
  while (paths_.size() >= kMostPaths) drop(paths_.front().path.get() == sending_ ? 1 : 0);
  UdpPathOwner& self = *this;
  paths_.push_back({std::make_unique<UdpPath>(io_, endpoint, std::move(config), session, self), {}});
  newest()->carrier().set_fec(features_);
  renewing_ = false;
  retry_at_.reset();
  retry_after_ = kFirstRetry;
}

void UdpPaths::end() {
  while (!paths_.empty()) drop(paths_.size() - 1);
  retry_at_.reset();
  keep_at_.reset();
  alone_since_.reset();
  begun_.reset();
  answered_ = unanswered_ = false;
  renewing_ = false;
  carrier_ = "";
  session_ = nullptr;
}

void UdpPaths::drop(std::size_t index) {
  UdpCarrier& carrier = paths_[index].path->carrier();
  if (auto memory = carrier.path_memory()) memory_ = memory;
  ended_ += carrier.counters();
  if (sending_ == paths_[index].path.get()) sending_ = nullptr;
  paths_.erase(paths_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::optional<PathMemory> UdpPaths::memory() const {
  if (const UdpPath* path = newest())
    if (auto found = path->carrier().path_memory()) return found;
  return memory_;
}

void UdpPaths::on_path_breach(UdpPath& path, const std::string& why) {
  log::warn("link_failed", {{"peer", peer_}, {"carrier", "udp"}, {"reason", why}});
  for (std::size_t i = 0; i < paths_.size(); ++i)
    if (paths_[i].path.get() == &path) {
      drop(i);
      break;
    }
  owner_.after_activity();
}

UdpPath* UdpPaths::best() const {
  // If the newest keys failed, older ones on the same line are no better.
  for (auto it = paths_.rbegin(); it != paths_.rend(); ++it) {
    if (it->path->carrier().state() == State::up) return it->path.get();
    if (it->path->carrier().state() == State::failed) return nullptr;
  }
  return nullptr;
}

void UdpPaths::send_on(UdpPath& path, TimePoint now) {
  path.carrier().prefer(now);
  sending_ = &path;
  path.kick();
}

void UdpPaths::note(const char* carrier, const char* reason) {
  if (std::string_view(carrier_) == carrier) return;
  if (*carrier_)
    log::info("link_path_changed",
              {{"peer", peer_}, {"from", carrier_}, {"to", carrier}, {"reason", reason}});
  carrier_ = carrier;
}

void UdpPaths::choose(const Situation& situation, TimePoint now) {
  if (!session_) return;
  if (situation.features != features_) {
    features_ = situation.features;
    for (auto& path : paths_) path.path->carrier().set_fec(features_);
  }
  // The bound for all peers overrides the configured rate of this one.
  const std::uint64_t rate = situation.rate_bits && situation.most_bits
                                 ? std::min(situation.rate_bits, situation.most_bits)
                                 : situation.rate_bits;
  if (rate != rate_bits_ || situation.most_bits != most_bits_) {
    rate_bits_ = rate;
    most_bits_ = situation.most_bits;
    for (auto& path : paths_) path.path->carrier().set_rate(rate_bits_, most_bits_, now);
  }

  compare_with_tcp(situation, now);
  const char* reason = "UDP works";
  if (sending_ && sending_->carrier().state() != State::up) {
    sending_ = nullptr;
    ++fallbacks_;
    reason = "packets over UDP are no longer acknowledged";
    if (newest()->carrier().keys_worn_out()) reason = "the keys for UDP have reached their usage limit";
    const bool carried_long = up_since_ && now - *up_since_ > kLatestRetry;
    if (carried_long) retry_after_ = kFirstRetry;
    most_retry_ = carried_long ? kLaterRetry : kLatestRetry;
  }
  UdpPath* target = best();
  const bool tcp_wished = situation.features.transport == config::Transport::tcp;
  if (tcp_wished && situation.tcp != kNoCarrier) {
    if (target) reason = "transport = tcp is configured";
    target = nullptr;
  } else if (target && situation.tcp != kNoCarrier &&
             situation.features.transport == config::Transport::automatic && rate_bits_ == 0 &&
             target->carrier().minimum_rtt() < (target == sending_ ? kClearlyShort : kShortLine)) {
    reason = "low round-trip time: TCP is as fast and needs less CPU";
    target = nullptr;
  }
  if (target) {
    if (sending_ != target || session_->preferred() == situation.tcp) {
      if (situation.tcp == kNoCarrier && tcp_wished) reason = "the TCP connection was lost";
      send_on(*target, now);
    }
    if (!up_since_) up_since_ = now;
    note("udp", reason);
    if (target == newest())
      for (auto& old : paths_)
        if (old.path.get() != target) old.ends = std::min(old.ends.value_or(now + kLinger), now + kLinger);
  } else {
    sending_ = nullptr;
    up_since_.reset();
    if (situation.tcp != kNoCarrier) {
      if (session_->preferred() != situation.tcp) session_->prefer(situation.tcp, now);
      note("tcp", reason);
    }
  }

  // No control connection: the newest keys continue for a while.
  if (situation.tcp != kNoCarrier) {
    alone_since_.reset();
  } else if (!alone_since_) {
    alone_since_ = now;
    if (sending_) {
      sending_->carrier().probe(now);
      sending_->kick();
    }
  }
  if (alone_since_ && now >= *alone_since_ + kAloneLimit)
    while (!paths_.empty()) drop(paths_.size() - 1);

  for (std::size_t i = paths_.size(); i-- > 0;)
    if (paths_[i].ends && now >= *paths_[i].ends && paths_[i].path.get() != sending_) drop(i);
  if (!tcp_wished && situation.tcp != kNoCarrier) renew_keys(situation.tcp);
  plan_retry(now);
  keep_standby(now);
  watch_for_answer(situation.tcp != kNoCarrier && !tcp_wished, now);
  watch_for_bursts();
  arm_timer();
}

// A queue that overflows, or an outage, stops both: then nothing is gained by a change, and what is in flight
// over UDP still arrives.
void UdpPaths::compare_with_tcp(const Situation& situation, TimePoint now) {
  const bool rival = situation.tcp != kNoCarrier && situation.send_on_tcp;
  for (auto& path : paths_) path.path->carrier().set_rival(rival && path.path.get() == sending_);
  const bool in_doubt = rival && sending_ && sending_->carrier().in_doubt();
  if (rival) {
    Buffer answer;
    session_->answer(answer);
    if (!answer.empty()) situation.send_on_tcp(answer);
  }
  switch (contest_.step(in_doubt, session_->liveness().question_answered())) {
    case CarrierContest::Next::nothing:
      return;
    case CarrierContest::Next::tcp_won:
      return sending_->carrier().on_outdone(now);
    case CarrierContest::Next::ask_both: {
      Buffer question;
      session_->ask(question);
      situation.send_on_tcp(question);
      sending_->carrier().probe(now);
      sending_->kick();
    }
  }
}

// Once for each session: somebody has to change a firewall.
void UdpPaths::watch_for_answer(bool is_wanted, TimePoint now) {
  answer_by_.reset();
  if (best()) answered_ = true;
  if (answered_) {
    unanswered_ = false;
    return;
  }
  if (!is_wanted || !begun_ || unanswered_) return;
  if (now < *begun_ + kAnswerLimit) {
    answer_by_ = *begun_ + kAnswerLimit;
    return;
  }
  unanswered_ = true;
  log::warn(
      "udp_unanswered",
      {{"peer", peer_},
       {"effect", "TCP carries the link: slow on lossy lines"},
       {"remedy", "let the firewalls between the sites pass UDP on the link's port, in both directions"}});
}

void UdpPaths::watch_for_bursts() {
  const bool drops = newest() && newest()->carrier().drops_bursts();
  if (!drops || std::exchange(drops_bursts_, true)) return;
  log::warn("udp_bursts_dropped",
            {{"peer", peer_},
             {"effect", "packets are sent one by one, which needs more CPU"},
             {"remedy",
              "look for a virtual interface or an emulator with a short queue on the path; try "
              "ethtool -K INTERFACE tx-udp-segmentation off"}});
}

// The control connection is closed and dialled again by whichever side can, which the acceptor alone could
// not do; the session continues over the new one.
void UdpPaths::renew_keys(CarrierId control) {
  const UdpPath* path = newest();
  if (!path || !path->carrier().keys_worn_out() || std::exchange(renewing_, true)) return;
  asio::post(io_, [self = self_, control] {
    if (*self)
      (*self)->owner_.on_carrier_closed(control, "the keys for UDP have reached their usage limit",
                                        EndedBy::other);
  });
}

void UdpPaths::keep_standby(TimePoint now) {
  UdpPath* path = newest();
  if (!path || path == sending_ || path->carrier().state() != State::up) return keep_at_.reset();
  if (keep_at_ && now < *keep_at_) return;
  if (std::exchange(keep_at_, now + kStandbyProbe)) {
    path->carrier().probe(now);
    path->kick();
  }
}

// A packet that arrives now may have been sent before the end of the connection; an acknowledgement of a
// packet that we sent since cannot.
bool UdpPaths::in_doubt() const {
  return alone_since_ && sending_ && sending_->carrier().peer_lived_at() <= *alone_since_;
}

void UdpPaths::plan_retry(TimePoint now) {
  UdpPath* path = newest();
  if (!path || path->carrier().state() != State::failed || path->carrier().keys_worn_out())
    return retry_at_.reset();
  if (!retry_at_) {
    retry_at_ = now + retry_after_;
    retry_after_ = std::min(2 * retry_after_, most_retry_);
  } else if (now >= *retry_at_) {
    probe_now(now);
  }
}

void UdpPaths::probe_now(TimePoint now) {
  UdpPath* path = newest();
  if (!path || path->carrier().state() != State::failed) return;
  retry_at_.reset();
  path->carrier().probe(now);
  path->kick();
}

void UdpPaths::kick() {
  if (sending_) sending_->kick();
}

void UdpPaths::arm_timer() {
  std::optional<TimePoint> next = retry_at_;
  auto sooner = [&](TimePoint time) { next = next ? std::min(*next, time) : time; };
  if (keep_at_) sooner(*keep_at_);
  if (answer_by_) sooner(*answer_by_);
  for (const auto& path : paths_)
    if (path.ends && path.path.get() != sending_) sooner(*path.ends);
  if (alone_since_ && !paths_.empty()) sooner(*alone_since_ + kAloneLimit);
  if (!next || (timer_at_ && *timer_at_ <= *next)) return;
  timer_at_ = next;
  timer_.expires_at(*next);
  timer_.async_wait([self = self_](boost::system::error_code error) {
    if (error || !*self) return;
    (*self)->timer_at_.reset();
    (*self)->owner_.after_activity();  // which chooses
  });
}

void UdpPaths::fill(LinkStatus& status) const {
  UdpStatus& udp = status.udp;
  static_cast<UdpCounters&>(udp) = ended_;
  TimerLateness late;
  for (const auto& path : paths_) {
    udp += path.path->carrier().counters();
    late.times += path.path->lateness().times;
    late.sum += path.path->lateness().sum;
    late.worst = std::max(late.worst, path.path->lateness().worst);
  }
  if (UdpPath* path = newest()) {
    const UdpCarrier& carrier = path->carrier();
    udp.state = state_of(carrier.state());
    udp.remote_address = text_of(carrier.peer());
    udp.smoothed_rtt = std::chrono::duration_cast<std::chrono::microseconds>(carrier.smoothed_rtt());
    udp.datagram_bytes = carrier.path_mtu();
    udp.erasure_rate = carrier.loss_rate();
    udp.pacing_rate_bits = carrier.pacing_rate_bits();
    udp.delivery_rate_bits = 8 * carrier.delivery_rate();
    const RateView rate = carrier.rate_view();
    udp.rate_law = rate.law == RateView::Law::told      ? "configured"
                   : rate.law == RateView::Law::guarded ? "limited"
                                                        : "measured";
    udp.rate_phase = rate.phase;
    udp.line_rate_bits = 8 * rate.line_rate;
    using std::chrono::microseconds;
    udp.base_rtt = std::chrono::duration_cast<microseconds>(rate.base_rtt.value_or(Duration{0}));
    udp.queue = std::chrono::duration_cast<microseconds>(rate.queue);
    udp.competes = rate.competes;
    udp.policed = rate.policed;
    udp.drops_bursts = carrier.drops_bursts();
    udp.segments_in_kernel = path->endpoint().segments_in_kernel() && !udp.drops_bursts;
  }
  udp.unanswered = unanswered_;
  udp.fallbacks = fallbacks_;
  if (late.times)
    udp.timer_lateness = std::chrono::duration_cast<std::chrono::microseconds>(late.sum / late.times);
  udp.worst_timer_lateness = std::chrono::duration_cast<std::chrono::microseconds>(late.worst);
}

}  // namespace longhaul::link::udp
