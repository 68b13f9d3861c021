// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_line.h"

#include <algorithm>

namespace longhaul::link::udp {
namespace asio = boost::asio;
using namespace std::chrono_literals;
namespace {

using State = UdpCarrier::State;

// Keys of an older connection: how long they still receive data under way once newer ones carry, and how long
// they wait for newer ones.
constexpr Duration kLinger = 5s, kOldest = 60s;
constexpr std::size_t kMostPaths = 4;

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

Result<UdpEndpoint*> UdpLine::dialling_endpoint(asio::io_context& io, const net::LocalEnd& local, bool v6) {
  for (const Dialling& each : dialling_)
    if (each.v6 == v6 && each.local == local) return each.endpoint.get();
  auto opened =
      UdpEndpoint::open(io, {local.address_for(v6), 0}, UdpEndpoint::Answers::by_route, local.interface);
  if (!opened) return opened.error();
  dialling_.push_back({local, v6, std::move(*opened)});
  return dialling_.back().endpoint.get();
}

// ----------------------------------------------------------------------------------------------------- keys

void UdpLine::begin(asio::io_context& io, UdpEndpoint& endpoint, UdpCarrierConfig config, Session& session,
                    UdpPathOwner& owner, const UdpPath* sending) {
  config.settings = settings_;
  memory_ = memory();
  config.path = memory_;
  while (paths_.size() >= kMostPaths) drop_at(paths_.front().path.get() == sending ? 1 : 0);
  paths_.push_back({std::make_unique<UdpPath>(io, endpoint, std::move(config), session, owner), {}});
  retry_at_.reset();
  retry_after_ = kFirstRetry;
}

void UdpLine::outdate(TimePoint now) {
  for (Path& old : paths_)
    if (!old.ends) old.ends = now + kOldest;
}

bool UdpLine::holds(const UdpPath* path) const {
  return std::ranges::any_of(paths_, [&](const Path& each) { return each.path.get() == path; });
}

UdpPath* UdpLine::best() const {
  // If the newest keys failed, older ones on the same line are no better.
  for (auto it = paths_.rbegin(); it != paths_.rend(); ++it) {
    if (it->path->carrier().state() == State::up) return it->path.get();
    if (it->path->carrier().state() == State::failed) return nullptr;
  }
  return nullptr;
}

void UdpLine::settle(TimePoint now) {
  for (Path& old : paths_)
    if (old.path.get() != newest()) old.ends = std::min(old.ends.value_or(now + kLinger), now + kLinger);
}

void UdpLine::drop_at(std::size_t index) {
  UdpCarrier& carrier = paths_[index].path->carrier();
  if (auto memory = carrier.rate().path_memory()) memory_ = memory;
  ended_ += carrier.counters();
  paths_.erase(paths_.begin() + static_cast<std::ptrdiff_t>(index));
}

void UdpLine::drop(const UdpPath& path) {
  for (std::size_t i = paths_.size(); i-- > 0;)
    if (paths_[i].path.get() == &path) drop_at(i);
}

void UdpLine::drop_all() {
  while (!paths_.empty()) drop_at(paths_.size() - 1);
  retry_at_.reset();
  keep_at_.reset();
}

// ------------------------------------------------------------------------------------------------- settings

void UdpLine::configure(std::span<const config::PeerPath> lines, UdpSettings settings, TimePoint now) {
  const auto known = std::ranges::find(lines, name_, &config::PeerPath::name);
  const bool is_configured = known != lines.end();
  cost_ = is_configured ? known->cost : kLastResort;
  order_ = static_cast<std::size_t>(known - lines.begin());
  if (is_configured) settings.rate_bits = known->rate_bits;
  // The bound for all peers overrides the configured rate of this one.
  if (settings.rate_bits && settings.most_bits)
    settings.rate_bits = std::min(settings.rate_bits, settings.most_bits);
  if (settings == settings_) return;
  settings_ = settings;
  for (Path& path : paths_) path.path->carrier().set(settings_, now);
}

PathSharing::Path UdpLine::as_choice() const {
  UdpPath* const path = best();
  return {.carrier = path ? &path->carrier() : nullptr, .cost = cost_, .order = order_};
}

void UdpLine::set_rival(bool there_is, const UdpPath* sending) {
  for (Path& path : paths_) path.path->carrier().set_rival(there_is && path.path.get() == sending);
}

void UdpLine::kick() {
  for (Path& path : paths_) path.path->kick();
}

// ----------------------------------------------------------------------------------------------------- time

void UdpLine::use(Use use, TimePoint now) {
  if (use == Use::standby)
    up_since_.reset();
  else if (!up_since_)
    up_since_ = now;
}

void UdpLine::on_fallback(TimePoint now) {
  const bool carried_long = up_since_ && now - *up_since_ > kLatestRetry;
  if (carried_long) retry_after_ = kFirstRetry;
  most_retry_ = carried_long ? kLaterRetry : kLatestRetry;
}

void UdpLine::step(const UdpPath* sending, Duration standby, TimePoint now) {
  for (std::size_t i = paths_.size(); i-- > 0;)
    if (paths_[i].ends && now >= *paths_[i].ends && paths_[i].path.get() != sending) drop_at(i);
  plan_retry(now);
  UdpPath* path = newest();
  if (!path || path == sending || path->carrier().state() != State::up) return keep_at_.reset();
  if (keep_at_ && now < *keep_at_) return;
  if (std::exchange(keep_at_, now + standby)) {
    path->carrier().probe(now);
    path->kick();
  }
}

void UdpLine::plan_retry(TimePoint now) {
  UdpPath* path = newest();
  if (!path || path->carrier().state() != State::failed || path->carrier().keys_worn_out())
    return retry_at_.reset();
  if (!retry_at_) {
    retry_at_ = now + retry_after_;
    retry_after_ = std::min(2 * retry_after_, most_retry_);
  } else if (now >= *retry_at_) {
    probe(Probe::failed, now);
  }
}

void UdpLine::probe(Probe which, TimePoint now) {
  UdpPath* path = newest();
  if (!path) return;
  const State state = path->carrier().state();
  if (state == State::up || (which == Probe::failed && state != State::failed)) return;
  retry_at_.reset();
  path->carrier().probe(now);
  path->kick();
}

std::optional<TimePoint> UdpLine::next_timeout(const UdpPath* sending) const {
  std::optional<TimePoint> next = retry_at_;
  auto sooner = [&](TimePoint time) { next = next ? std::min(*next, time) : time; };
  if (keep_at_) sooner(*keep_at_);
  for (const Path& path : paths_)
    if (path.ends && path.path.get() != sending) sooner(*path.ends);
  return next;
}

// --------------------------------------------------------------------------------------------------- status

std::optional<PathMemory> UdpLine::memory() const {
  if (const UdpPath* path = newest())
    if (auto found = path->carrier().rate().path_memory()) return found;
  return memory_;
}

UdpLine::Figures UdpLine::figures() const {
  Figures figures;
  UdpStatus& udp = figures.udp;
  static_cast<UdpCounters&>(udp) = ended_;
  for (const Path& path : paths_) {
    udp += path.path->carrier().counters();
    figures.late += path.path->lateness();
  }
  UdpPath* const path = newest();
  if (!path) return figures;
  const UdpCarrier& carrier = path->carrier();
  udp.state = state_of(carrier.state());
  udp.remote_address = text_of(carrier.peer());
  udp.smoothed_rtt = std::chrono::duration_cast<std::chrono::microseconds>(carrier.rtt().smoothed());
  udp.datagram_bytes = carrier.flight().mtu().current();
  udp.erasure_rate = carrier.loss_rate();
  udp.pacing_rate_bits = 8 * carrier.rate().bytes_per_second();
  udp.delivery_rate_bits = 8 * carrier.rate().delivered_per_second();
  const RateView rate = carrier.rate().view();
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
  udp.drops_bursts = carrier.flight().bursts().drops_bursts();
  udp.segments_in_kernel = path->endpoint().segments_in_kernel() && !udp.drops_bursts;
  return figures;
}

}  // namespace longhaul::link::udp
