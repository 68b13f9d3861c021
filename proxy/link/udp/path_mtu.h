// SPDX-License-Identifier: Apache-2.0
// The largest datagram that the path carries: packetization layer path MTU discovery (RFC 8899), searched
// with probes that carry no data. The carrier makes and sends packets and detects their loss. ICMP is
// ignored, because it can be forged. All sizes are bytes of UDP payload.
#pragma once
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

enum class IpFamily : std::uint8_t { v4, v6 };

class PathMtu {
 public:
  // The minimum that a path must carry; otherwise there is no carrier (RFC 8899, section 5.1.2, BASE_PLPMTU).
  static constexpr std::size_t kBase = 1'200;

  // No size above `ceiling` is tested, for example the MTU of the local interface; nor above 9,000 bytes of
  // IP.
  explicit PathMtu(IpFamily family, std::size_t ceiling = 65'535);

  // The limit for a packet with data.
  std::size_t current() const { return current_; }

  // The size of a probe that should be sent now. At most one is in flight; it carries no data, its loss does
  // not affect the rate, and each one sent is reported as acknowledged or lost, once.
  std::optional<std::size_t> probe_due(TimePoint now) const;
  void on_probe_sent(std::size_t size, TimePoint now);
  void on_probe_acked(std::size_t size, TimePoint now);
  void on_probe_lost(std::size_t size, TimePoint now);
  // The local stack refused to send a packet of this size (EMSGSIZE), probe or not: no need to try again.
  void on_too_large(std::size_t size, TimePoint now);

  // For packets that are not probes: each one lost, and then the largest one that the same ACK reports.
  void on_packet_lost(std::size_t size);
  void on_packet_acked(std::size_t size);
  // A probe timeout (RFC 9002, section 6.2) passed without any packet from the peer.
  void on_timeout();
  // The path was given up because nothing was acknowledged for too long. The second time in a row without a
  // packet above the base, its size may be the reason.
  void on_failed();
  // The path has changed: earlier results are void.
  void restart();

  // When probe_due() returns a size without further events; nullopt: it does so now, or waits for an event.
  std::optional<TimePoint> next_timeout(TimePoint now) const;

  // How often sizes above the base were given up because no such packet arrived. A wrong suspicion costs
  // little: the previous size is probed first, and used again after a round trip if the path carries it.
  std::uint64_t black_holes() const { return black_holes_; }

 private:
  std::optional<std::size_t> next_size(std::size_t ceiling) const;
  std::size_t payload(std::size_t ip_bytes) const;
  void watch_losses();
  void fall_to_base();
  void settle_if_done(TimePoint now);

  IpFamily family_;
  std::size_t highest_;  // largest size to be tested
  std::size_t current_ = kBase;
  std::size_t ceiling_;                   // a larger packet was lost
  std::optional<std::size_t> give_back_;  // size before a black hole: tested first
  std::optional<std::size_t> probe_;      // in flight
  bool heard_since_probe_ = false;        // if not, the probe's loss is due to the path, not its size
  bool path_lives_ = true;                // while no packet arrives, none is probed
  int probes_lost_ = 0;                   // of one size
  int timeouts_ = 0;                      // in a row
  int large_lost_ = 0;                    // above the base, since one was acknowledged
  bool small_acked_ = false;              // since then
  bool failed_ = false;                   // the path was given up since then
  std::optional<TimePoint> raise_at_;     // the search rests until then
  Duration raise_after_;
  std::uint64_t black_holes_ = 0;
};

}  // namespace longhaul::link::udp
