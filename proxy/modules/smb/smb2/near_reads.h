// SPDX-License-Identifier: Apache-2.0
// The near half's part for reads: answers READs from pushed data (ahead_cache.h), and reports missing ranges
// to the far half. far_reads.h decides what is pushed, and for which READs.
#pragma once
#include "proxy/modules/ahead/ahead_cache.h"
#include "proxy/modules/smb/smb2/fresh.h"
#include "proxy/modules/smb/smb2/parts.h"

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
  void on_surroundings(TimePoint, const Surroundings&) override { tell_allowance(); }
  bool quiet() const override { return waiting_.empty(); }

  void drop(const Open& open) { drop(open.key); }
  // For all opens that may refer to this file.
  void drop_file(const FileGroup& file);
  // Memory of READs that wait, in addition to what the account counts.
  std::size_t held_bytes() const { return cache_.waiting_bytes(); }
  void wasted(std::uint64_t bytes) {
    other_wasted_bytes_ += bytes;
    count();
  }

 private:
  struct Read {  // as requested by the client
    Header header;
    std::uint32_t length = 0;
    std::uint32_t minimum_count = 0;
  };
  void answer(TimePoint now, const Read& read, const OpenKey& open, std::uint64_t offset,
              const ReadData& data);
  void drop(const OpenKey& open);
  void tell_allowance();
  void count();

  NearSide& side_;
  AheadCache cache_;
  std::uint64_t other_wasted_bytes_ = 0;
  Fresh fresh_;
  KeyedMap<MessageId, Read> waiting_;
};

}  // namespace longhaul::smb::smb2
