// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_paths.h"

#include <algorithm>
#include <boost/asio/post.hpp>

namespace longhaul::link::udp {
namespace asio = boost::asio;
using namespace std::chrono_literals;
namespace {

using State = UdpCarrier::State;

// Without a control connection we cannot learn of new keys, nor of the peer's end.
constexpr Duration kAloneLimit = 60s;
// While another carrier sends, a working path is probed this often: NATs keep their mapping, and the path is
// known to work when it is needed. More often where another path may take over at any moment.
constexpr Duration kStandbyProbe = 15s, kReadyProbe = 1s;

}  // namespace

UdpPaths::UdpPaths(asio::io_context& io, std::string peer, CarrierOwner& owner)
    : io_(io), owner_(owner), log_(std::move(peer)), timer_(io), self_(std::make_shared<UdpPaths*>(this)) {}

UdpPaths::~UdpPaths() { *self_ = nullptr; }

UdpEndpoint* UdpPaths::dialling_endpoint(const std::string& name, const net::LocalEnd& local, bool v6) {
  const auto endpoint = lines_.named(name).dialling_endpoint(io_, local, v6);
  if (endpoint) return *endpoint;
  log_.no_socket(name, endpoint.error());
  return nullptr;
}

void UdpPaths::begin(Session& session) {
  const TimePoint now = Clock::now();
  session_ = &session;
  answer_.begin(now);
  for (auto& each : lines_) each->outdate(now);
  renewing_ = false;
}

void UdpPaths::add(const std::string& name, UdpEndpoint& endpoint, UdpCarrierConfig config) {
  UdpPathOwner& self = *this;
  lines_.named(name).begin(io_, endpoint, std::move(config), *session_, self, sending_);
}

void UdpPaths::end() {
  sending_ = nullptr;
  shares_ = {};
  for (auto& each : lines_) {
    each->drop_all();
    each->use(UdpLine::Use::standby, Clock::now());
  }
  alone_since_.reset();
  answer_.end();
  renewing_ = false;
  log_.session_ends();
  session_ = nullptr;
}

// The path in use may be gone.
void UdpPaths::forget_dropped() {
  if (!lines_.holds(sending_)) sending_ = nullptr;
}

void UdpPaths::on_path_breach(UdpPath& path, const std::string& why) {
  log_.peer_failed(why);
  for (auto& each : lines_) each->drop(path);
  forget_dropped();
  owner_.after_activity();
}

void UdpPaths::configure(const Situation& situation, TimePoint now) {
  // What all may send together, shared by those that send.
  const std::uint64_t most = situation.most_bits / (1 + shares_.helpers.size());
  for (auto& each : lines_)
    each->configure(situation.lines,
                    {.rate_bits = each.get() == &lines_.front() ? situation.rate_bits : 0,
                     .most_bits = most,
                     .fec = situation.features.fec},
                    now);
}

TransportVerdict UdpPaths::transport_for(const Situation& situation, bool works) const {
  TransportFacts facts{.transport = situation.features.transport,
                       .tcp_is_there = situation.tcp != kNoCarrier,
                       .udp_works = works};
  UdpPath* const only = lines_.in_use() == 1 ? lines_.front().best() : nullptr;
  facts.udp_sends = sending_ && only == sending_;
  if (only && situation.rate_bits == 0) facts.measured_line_rtt = only->carrier().rtt().lasting_minimum();
  return choose_transport(facts);
}

void UdpPaths::choose(const Situation& situation, TimePoint now) {
  if (!session_) return;
  configure(situation, now);
  compare_with_tcp(situation, now);
  const char* reason = "UDP works";
  if (sending_ && sending_->carrier().state() != State::up) {
    ++fallbacks_;
    reason = "packets over UDP are no longer acknowledged";
    if (sending_->carrier().keys_worn_out()) reason = "the keys for UDP have reached their usage limit";
    for (auto& each : lines_)
      if (each->holds(sending_)) each->on_fallback(now);
    sending_ = nullptr;
  }
  std::vector<PathSharing::Path> paths;
  for (const auto& each : lines_) paths.push_back(each->as_choice());
  PathShares shares = sharing_.choose(situation.policy, paths, *session_, now);
  const TransportVerdict transport = transport_for(situation, shares.preferred.has_value());
  if (transport.reason) reason = transport.reason;
  if (!transport.udp) shares = {};
  use(situation.policy, shares, paths, now);
  if (shares_.preferred) {
    log_.carried_by("udp", reason);
  } else if (situation.tcp != kNoCarrier) {
    if (session_->preferred() != situation.tcp) session_->prefer(situation.tcp, now);
    log_.carried_by("tcp", reason);
  }
  watch_lines();

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
    for (auto& each : lines_) each->drop_all();
  forget_dropped();

  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const bool ready =
        lines_.in_use() > 1 && shares_.preferred && lines_[i].cost() <= lines_[*shares_.preferred].cost();
    lines_[i].step(sending_, ready ? kReadyProbe : kStandbyProbe, now);
  }
  const bool tcp_wished = situation.features.transport == config::Transport::tcp;
  if (!tcp_wished && situation.tcp != kNoCarrier) renew_keys(situation.tcp);
  watch_for_answer(situation.tcp != kNoCarrier && !tcp_wished, now);
  if (lines_.drops_bursts()) log_.bursts_dropped();
  arm_timer();
}

void UdpPaths::use(config::PathPolicy policy, const PathShares& shares,
                   std::span<const PathSharing::Path> paths, TimePoint now) {
  const bool is_other = sharing_.apply(policy, shares, paths, *session_, now);
  const std::vector<bool> took_part = parts();
  const PathShares before = std::exchange(shares_, shares);
  const UdpPath* const sent = std::exchange(sending_, nullptr);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    UdpLine& each = lines_[i];
    UdpPath* const best = each.best();
    const bool sends = takes_part(i);
    each.use(sends ? UdpLine::Use::carries : UdpLine::Use::standby, now);
    if (i == shares.preferred) sending_ = best;
    if (sends && best == each.newest()) each.settle(now);
    const bool is_new = sends && !took_part[i];
    const bool gave_way = paths[i].carrier && paths[i].carrier->state() != State::up;
    if (is_new || gave_way || (i == shares.second && before.second != shares.second)) each.kick();
    if (shares.stranded && !before.stranded) each.probe(UdpLine::Probe::silent, now);
  }
  if (sending_ && (is_other || sending_ != sent)) sending_->kick();
}

// Something of the session is sent there: by the peer's policy or another one that streams ask for, as a
// helper, or as the place for copies.
bool UdpPaths::takes_part(std::size_t line) const {
  using config::PathPolicy;
  if (!shares_.preferred) return false;
  const auto asked = [&](PathPolicy policy) {
    return session_ && session_->outgoing().asked_for(policy, Clock::now());
  };
  return line == shares_.preferred || line == shares_.second ||
         std::ranges::find(shares_.helpers, line) != shares_.helpers.end() ||
         (line == shares_.first && asked(PathPolicy::failover)) ||
         (line == shares_.fastest && (asked(PathPolicy::sum) || asked(PathPolicy::best)));
}

std::vector<bool> UdpPaths::parts() const {
  std::vector<bool> parts;
  for (std::size_t i = 0; i < lines_.size(); ++i) parts.push_back(takes_part(i));
  return parts;
}

void UdpPaths::watch_lines() {
  using State = UdpPathLog::LineState;
  // Lines with names alone: others are reported by the change of the carrier and watch_for_answer().
  for (std::size_t i = 1; i < lines_.size(); ++i) {
    const UdpLine& each = lines_[i];
    log_.line_is(i, each.name(), each.best() ? State::works : each.newest() ? State::silent : State::unused);
  }
  if (const auto carries = shares_.preferred)
    log_.carried_on(*carries, lines_[*carries].name(), shares_.reason);
}

// A queue that overflows, or an outage, stops both: then nothing is gained by a change, and what is in flight
// over UDP still arrives.
void UdpPaths::compare_with_tcp(const Situation& situation, TimePoint now) {
  const bool rival = situation.tcp != kNoCarrier && situation.send_on_tcp;
  for (auto& line : lines_) line->set_rival(rival, sending_);
  const bool in_doubt = rival && sending_ && sending_->carrier().in_doubt();
  if (rival) {
    Buffer answer;
    session_->questions().answer(answer);
    if (!answer.empty()) situation.send_on_tcp(answer);
  }
  switch (contest_.step(in_doubt, session_->questions().answered())) {
    case CarrierContest::Next::nothing:
      return;
    case CarrierContest::Next::tcp_won:
      return sending_->carrier().on_outdone(now);
    case CarrierContest::Next::ask_both: {
      Buffer question;
      session_->questions().ask(question);
      situation.send_on_tcp(question);
      sending_->carrier().probe(now);
      sending_->kick();
    }
  }
}

void UdpPaths::watch_for_answer(bool is_wanted, TimePoint now) {
  using Answer = AnswerWatch::Answer;
  if (answer_.step(lines_.any_works() ? Answer::works : is_wanted ? Answer::wanted : Answer::unwanted, now))
    log_.unanswered();
}

// The control connection is closed and dialled again by whichever side can, which the acceptor alone could
// not do; the session continues over the new one.
void UdpPaths::renew_keys(CarrierId control) {
  if (!lines_.keys_worn_out() || std::exchange(renewing_, true)) return;
  asio::post(io_, [self = self_, control] {
    if (*self)
      (*self)->owner_.on_carrier_closed(control, "the keys for UDP have reached their usage limit",
                                        EndedBy::other);
  });
}

// A packet that arrives now may have been sent before the end of the connection; an acknowledgement of a
// packet that we sent since cannot.
bool UdpPaths::in_doubt() const {
  return alone_since_ && sending_ &&
         sending_->carrier().flight().sent().newest_acknowledged() <= *alone_since_;
}

void UdpPaths::probe_now(TimePoint now) {
  for (auto& each : lines_) each->probe(UdpLine::Probe::failed, now);
}

void UdpPaths::kick() {
  for (std::size_t i = 0; i < lines_.size(); ++i)
    if (UdpPath* path = takes_part(i) ? lines_[i].best() : nullptr) path->kick();
}

void UdpPaths::arm_timer() {
  std::optional<TimePoint> next;
  auto sooner = [&](std::optional<TimePoint> time) {
    if (time) next = next ? std::min(*next, *time) : time;
  };
  sooner(answer_.next_timeout());
  sooner(sharing_.next_change());
  sooner(lines_.next_timeout(sending_));
  if (alone_since_ && lines_.in_use() > 0) sooner(*alone_since_ + kAloneLimit);
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
  lines_.fill(status, shares_, parts());
  status.udp.unanswered = answer_.unanswered();
  status.udp.fallbacks = fallbacks_;
}

}  // namespace longhaul::link::udp
