// SPDX-License-Identifier: Apache-2.0
// One leg of an SMB1 connection whose messages are signed with a known key ([MS-CIFS] 3.1.4.1, 3.2.4.1,
// 3.3.4.1): numbers messages, verifies and removes the signatures of received ones, and signs those that are
// sent. Because some requests are answered here, and others added, the numbers of the two legs differ.
#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/seal/gathered.h"
#include "proxy/modules/smb/seal/leg.h"
#include "proxy/modules/smb/seal/smb1_signer.h"
#include "proxy/modules/smb/smb1/message.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb::seal {

class Smb1Leg {
 public:
  using To = Leg::To;
  explicit Smb1Leg(To to) : to_(to) {}

  // Starts with the response to this login request: it has number 1, and every message after it is signed,
  // whatever user it belongs to. To be called once.
  void begin(MessageNumber login, Bytes key);
  bool empty() const { return !signer_; }

  // As Leg::open() and Leg::seal(). Before begin(), everything passes unchanged.
  Result<Frame> open(const Frame& frame);
  [[nodiscard]] Result<void> seal(Slice bytes, std::vector<Slice>& out);

  std::size_t state_bytes() const { return asked_.size() * 64; }

  static constexpr std::size_t kMostRequests = 1 << 14, kMostAnswered = 256;

 private:
  struct Request {
    std::uint32_t number = 0;
    std::optional<std::uint32_t> first;  // the first request of a transaction in several requests
    bool answered = false;
  };
  // The number of a request, in wire order. Returns nullopt if there are too many unanswered ones.
  std::optional<std::uint32_t> count(const smb1::Header& request);
  Request* find(const smb1::Header& answer);
  void answered(const smb1::Header& answer, Request& request);
  Result<void> seal_frame(Gathered::Whole frame, std::vector<Slice>& out);
  Result<std::uint32_t> number_for(const smb1::Header& header, Bytes marked);

  To to_;
  std::optional<Smb1Signer> signer_;
  std::uint32_t next_ = 2;
  KeyedMap<MessageNumber, Request> asked_;
  // A response may have several parts, so its request is remembered for a while after the first.
  std::deque<MessageNumber> answered_;
  Gathered gathered_;
};

}  // namespace longhaul::smb::seal
