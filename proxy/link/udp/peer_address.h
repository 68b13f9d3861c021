// SPDX-License-Identifier: Apache-2.0
// Where the peer of a carrier is: learned from its first packet, and followed when it moves, once it has
// shown that it receives there (PROTOCOL.md, section 13). Leaves packets to the carrier.
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

  // An authentic packet came from there. Only the newest packet indicates the peer's address; it may have
  // been forwarded by an attacker, so the address is validated. True: it is the first address.
  enum class Age : std::uint8_t { newest, older };
  bool note(const UdpAddress& from, Age age, TimePoint now);
  // The peer asks whether this side receives there.
  void on_challenge(const PathToken& token, const UdpAddress& from) { response_ = {token, from}; }
  // True: the peer has moved.
  bool on_response(const PathToken& token);

  // A challenge or a response is to be sent; appends it and returns where it goes.
  bool frame_due() const { return challenge_due_ || response_; }
  UdpAddress write_frame(Buffer& out);

 private:
  UdpAddress current_;
  struct Response {
    PathToken token;
    UdpAddress to;
  };
  std::optional<Response> response_;
  std::optional<UdpAddress> candidate_;  // the peer seems to have moved there
  std::optional<PathToken> challenge_;   // sent there, not answered yet
  bool challenge_due_ = false;
  std::optional<TimePoint> challenged_at_;
};

}  // namespace longhaul::link::udp
