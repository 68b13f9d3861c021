// SPDX-License-Identifier: Apache-2.0
// The address of a carrier's peer: taken from its first packet; changed after the peer moved, once it has
// shown that it receives at the new address (PROTOCOL.md, section 13). The carrier sends the packets.
#pragma once
#include <optional>

#include "proxy/link/udp/carrier_frames.h"
#include "proxy/link/udp/udp_addresses.h"

namespace longhaul::link::udp {

class PeerAddress {
 public:
  explicit PeerAddress(const UdpAddress& configured) : current_(configured) {}

  const UdpAddress& current() const { return current_; }
  bool known() const { return !unknown(current_); }

  // An authentic packet came from `from`. Only the newest packet indicates the peer's address; an attacker
  // may have forwarded it, so the address is validated. Returns whether it is the first address.
  enum class Age : std::uint8_t { newest, older };
  bool note(const UdpAddress& from, Age age, TimePoint now);
  // The peer tests whether this side receives at this address.
  void on_challenge(const PathToken& token, const UdpAddress& from) { response_ = {token, from}; }
  // Returns whether the peer has moved.
  bool on_response(const PathToken& token);

  // If a challenge or a response is due, write_frame() appends it and returns its destination.
  bool frame_due() const { return challenge_due_ || response_; }
  UdpAddress write_frame(Buffer& out);

 private:
  UdpAddress current_;
  struct Response {
    PathToken token;
    UdpAddress to;
  };
  std::optional<Response> response_;
  std::optional<UdpAddress> candidate_;  // the peer's probable new address
  std::optional<PathToken> challenge_;   // sent to it, and not answered yet
  bool challenge_due_ = false;
  std::optional<TimePoint> challenged_at_;
};

}  // namespace longhaul::link::udp
