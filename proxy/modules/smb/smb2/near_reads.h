// SPDX-License-Identifier: Apache-2.0
// The near half's part for reads: answers READs from what was pushed ahead (ahead_cache.h), and tells the far
// half what it lacks. What is pushed, and which READs it is for, is decided in far_reads.h.
#pragma once
#include <unordered_map>

#include "proxy/modules/smb/ahead_cache.h"
#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/unsettled.h"

namespace longhaul::smb::smb2 {

class NearReads final : public NearPart {
 public:
  NearReads(NearSide& side, std::shared_ptr<AheadAccount> account)
      : side_(side), cache_(std::move(account)) {}

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_surroundings(TimePoint, const modules::Surroundings&) override { tell_allowance(); }
  bool quiet() const override { return waiting_.empty(); }

  void drop(const Open& open);
  void wasted(std::uint64_t bytes) {
    other_wasted_bytes_ += bytes;
    count();
  }

 private:
  struct Read {  // as the client asked
    Header header;
    std::uint32_t length = 0;
    std::uint32_t minimum_count = 0;
  };
  void answer(TimePoint now, const Read& read, const OpenKey& open, std::uint64_t offset,
              const ReadData& data);
  void tell_allowance();
  void count();

  NearSide& side_;
  AheadCache cache_;
  std::uint64_t other_wasted_bytes_ = 0;
  Unsettled unsettled_;
  std::unordered_map<MessageId, Read> waiting_;
};

}  // namespace longhaul::smb::smb2
