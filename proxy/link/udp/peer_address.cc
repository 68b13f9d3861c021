// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/peer_address.h"

#include <openssl/rand.h>

namespace longhaul::link::udp {
namespace {
constexpr Duration kChallengeInterval = std::chrono::milliseconds(200);
}  // namespace

bool PeerAddress::note(const UdpAddress& from, Age age, TimePoint now) {
  if (same(from, current_)) return false;
  if (!known()) {
    current_ = from;
    return true;
  }
  if (age == Age::older) return false;
  if (challenged_at_ && now - *challenged_at_ < kChallengeInterval) return false;
  // The same token again while the challenge or its response may be lost, or in transit.
  if (candidate_ != from) {
    PathToken token;
    if (RAND_bytes(reinterpret_cast<unsigned char*>(token.data()), sizeof token) != 1) return false;
    challenge_ = token;
    candidate_ = from;
  }
  challenged_at_ = now;
  challenge_due_ = true;
  return false;
}

bool PeerAddress::on_response(const PathToken& token) {
  if (!challenge_ || token != *challenge_) return false;
  current_ = *candidate_;
  candidate_.reset();
  challenge_.reset();
  challenge_due_ = false;
  return true;
}

UdpAddress PeerAddress::write_frame(Buffer& out) {
  if (response_) {
    const Response response = *response_;
    response_.reset();
    write_path_token(CarrierFrameType::path_response, response.token, out);
    return response.to;
  }
  write_path_token(CarrierFrameType::path_challenge, *challenge_, out);
  challenge_due_ = false;
  return *candidate_;
}

}  // namespace longhaul::link::udp
