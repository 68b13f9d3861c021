// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_mtu.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

// Common sizes of IP packets on lines and tunnels: IPv6's minimum, VPNs and the like, PPPoE, Ethernet, and
// larger ones up to jumbo frames.
constexpr std::array<std::size_t, 13> kCommon{1280, 1400, 1420, 1440, 1450, 1460, 1480,
                                              1492, 1500, 4000, 4352, 8896, 9000};
constexpr std::size_t kEthernet = 1500;
// Below Ethernet's size the search ends at this precision: one per cent of a packet.
constexpr std::size_t kExactBytes = 16;

constexpr int kProbes = 3;        // RFC 8899, section 5.1.2, MAX_PROBES
constexpr int kLargeLost = 6;     // consecutive, while small ones arrive: a black hole
constexpr int kTimeoutsLost = 2;  // consecutive, of any packet
// RFC 8899, PMTU_RAISE_TIMER, is 600 s. Earlier at first: a search on a very lossy line may have been
// unlucky.
constexpr Duration kFirstRaise = 30s, kLastRaise = 600s;

}  // namespace

PathMtu::PathMtu(IpFamily family, std::size_t ceiling)
    : family_(family),
      highest_(std::clamp(ceiling, kBase, payload(kCommon.back()))),
      ceiling_(highest_),
      raise_after_(kFirstRaise) {}

std::size_t PathMtu::payload(std::size_t ip_bytes) const {
  return ip_bytes - 8 - (family_ == IpFamily::v4 ? 20 : 40);
}

// The likeliest sizes first: the previous one, Ethernet's, the highest. After a loss the middle one of the
// remaining common sizes, and below Ethernet's the middle of the remaining range.
std::optional<std::size_t> PathMtu::next_size(std::size_t ceiling) const {
  auto open = [&](std::size_t size) { return size > current_ && size <= ceiling; };
  if (give_back_ && open(*give_back_)) return give_back_;
  std::size_t ethernet = payload(kEthernet);
  if (open(ethernet)) return ethernet;
  if (!open(ceiling)) return std::nullopt;
  if (ceiling == highest_) return ceiling;

  auto first = std::find_if(kCommon.begin(), kCommon.end(), [&](auto ip) { return open(payload(ip)); });
  auto last = std::find_if(first, kCommon.end(), [&](auto ip) { return !open(payload(ip)); });
  if (first != last) return payload(first[(last - first) / 2]);
  if (current_ < ethernet && ceiling - current_ >= kExactBytes)
    return current_ + (ceiling - current_ + 1) / 2;
  return std::nullopt;
}

std::optional<std::size_t> PathMtu::probe_due(TimePoint now) const {
  if (probe_ || !path_lives_) return std::nullopt;
  if (!raise_at_) return next_size(ceiling_);
  return now >= *raise_at_ ? next_size(highest_) : std::nullopt;
}

std::optional<TimePoint> PathMtu::next_timeout(TimePoint now) const {
  return raise_at_ && *raise_at_ > now && !probe_ && path_lives_ ? raise_at_ : std::nullopt;
}

void PathMtu::on_probe_sent(std::size_t size, TimePoint now) {
  if (raise_at_ && now >= *raise_at_) {
    raise_at_.reset();
    ceiling_ = highest_;
    probes_lost_ = 0;
  }
  probe_ = size;
  heard_since_probe_ = false;
}

void PathMtu::on_probe_acked(std::size_t size, TimePoint now) {
  path_lives_ = true;
  timeouts_ = 0;
  if (probe_ != size) return;  // given up before, or of the previous path
  probe_.reset();
  probes_lost_ = 0;
  large_lost_ = 0;
  small_acked_ = failed_ = false;
  if (size > current_) {
    current_ = size;
    raise_after_ = kFirstRaise;
  }
  ceiling_ = std::max(ceiling_, size);
  if (give_back_ && *give_back_ <= current_) give_back_.reset();
  settle_if_done(now);
}

void PathMtu::on_probe_lost(std::size_t size, TimePoint now) {
  if (probe_ != size) return;
  probe_.reset();
  if (!heard_since_probe_ || ++probes_lost_ < kProbes) return;
  on_too_large(size, now);
}

void PathMtu::on_too_large(std::size_t size, TimePoint now) {
  if (probe_ == size) probe_.reset();
  probes_lost_ = 0;
  if (size <= kBase) return;
  if (current_ >= size) {  // the size that worked no longer does
    current_ = kBase;
    raise_at_.reset();
  }
  ceiling_ = std::min(ceiling_, size - 1);
  if (give_back_ && *give_back_ >= size) give_back_.reset();
  settle_if_done(now);
}

void PathMtu::on_packet_acked(std::size_t size) {
  heard_since_probe_ = true;
  path_lives_ = true;
  timeouts_ = 0;
  if (size > kBase) {
    large_lost_ = 0;
    small_acked_ = failed_ = false;
  } else {
    small_acked_ = true;
    watch_losses();
  }
}

void PathMtu::on_packet_lost(std::size_t size) {
  if (size <= kBase || current_ == kBase) return;
  ++large_lost_;
  watch_losses();
}

void PathMtu::watch_losses() {
  if (large_lost_ >= kLargeLost && small_acked_) fall_to_base();
}

void PathMtu::on_timeout() {
  if (++timeouts_ < kTimeoutsLost) return;
  path_lives_ = false;
  probes_lost_ = 0;
  fall_to_base();
}

void PathMtu::on_failed() {
  if (std::exchange(failed_, true)) fall_to_base();
}

void PathMtu::restart() {
  current_ = kBase;
  ceiling_ = highest_;
  give_back_.reset();
  probe_.reset();
  raise_at_.reset();
  raise_after_ = kFirstRaise;
  path_lives_ = true;
  small_acked_ = failed_ = false;
  probes_lost_ = timeouts_ = large_lost_ = 0;
}

void PathMtu::fall_to_base() {
  large_lost_ = 0;
  if (current_ == kBase) return;
  ++black_holes_;
  give_back_ = current_;
  current_ = kBase;
  probes_lost_ = 0;
  raise_at_.reset();
}

void PathMtu::settle_if_done(TimePoint now) {
  if (raise_at_ || current_ == highest_ || next_size(ceiling_)) return;
  raise_at_ = now + raise_after_;
  raise_after_ = std::min(2 * raise_after_, kLastRaise);
}

}  // namespace longhaul::link::udp
