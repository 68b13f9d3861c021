// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/open_credit.h"

namespace longhaul::link {

// The sum of all credit never exceeds the cap, whatever the peer opens within a round trip, because the share
// of its new streams is taken from the pool beforehand.
bool OpenCredit::grant(Traffic traffic) {
  const std::uint64_t ahead = this->ahead();
  const std::uint64_t wanted = std::min<std::uint64_t>(64 << 20, pool_.open_share(ahead));
  // A smaller increase is not worth a frame, unless all is quiet: the next stream is alone then.
  if (ahead >= (traffic == Traffic::some ? wanted / 4 * 3 : wanted)) return false;
  pool_.take(wanted - ahead);
  granted_ += wanted - ahead;
  return true;
}

Result<void> OpenCredit::take(std::uint64_t bytes) {
  if (bytes > ahead()) return LinkError::credit_exceeded;
  used_ += bytes;
  pool_.give(bytes);  // the stream's own ReceiveCredit takes it immediately
  return {};
}

void OpenCredit::on_frame(const OpenCreditFrame& frame) {
  if (frame.limit > peer_limit_) {  // otherwise an older frame, or a repetition
    peer_limit_ = frame.limit;
    peer_share_ = peer_limit_ - peer_taken_;
  }
  peer_floor_ = std::min(frame.floor, CreditPool::kMaxInitial);
}

OpenCredit::First OpenCredit::take_first(std::uint64_t window) {
  // In addition to the floor a stream gets a quarter of what is left, and half of it if no other stream took
  // any: a stream that starts alone waits one round trip less for more.
  const std::uint64_t left = peer_limit_ - peer_taken_;
  std::uint64_t credit =
      peer_floor_ + std::min(CreditPool::kMaxInitial, left >= peer_share_ ? left / 2 : left / 4);
  if (window) credit = std::min(credit, window);
  const std::uint64_t above_floor = credit > peer_floor_ ? credit - peer_floor_ : 0;
  peer_taken_ += above_floor;
  return {credit, above_floor};
}

}  // namespace longhaul::link
