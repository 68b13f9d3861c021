// SPDX-License-Identifier: Apache-2.0
// The far half's part for reads: fetches data that the client will request (as decided by read_ahead.h) from
// the server, pushes it to the near half, and swallows READs whose data is already under way. A swallowed
// READ is answered by the near half, or sent to the server after all when that data is dropped.
#pragma once
#include <set>
#include <unordered_map>

#include "proxy/modules/ahead/learnt_limits.h"
#include "proxy/modules/smb/smb2/fresh.h"
#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/read_ahead_file.h"
#include "proxy/modules/smb/smb2/second_handles.h"

namespace longhaul::smb::smb2 {

class FarReads final : public FarPart {
 public:
  explicit FarReads(FarSide& side) : side_(side) {}

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_surroundings(TimePoint now, const Surroundings& surroundings) override;
  void on_ids_freed(TimePoint now) override;
  void stream_ended(TimePoint) override { ended_ = true; }
  bool quiet() const override { return sums_.swallowed == 0; }
  std::size_t held_bytes() const { return sums_.swallowed * kSwallowedBytes; }

  void drop(TimePoint now, const Open& open);
  void on_watched(TimePoint now, const Open& open);
  // Whether the near half has, or will have from what is under way, all data of this READ, and answers it:
  // then no other part may. To be called before any part, right after before_request().
  bool answered_by_near(TimePoint now, const Message& message);

 private:
  using File = ReadAheadFile;

  File* find(const OpenKey& open);
  void begin(TimePoint now, const Open& open);
  void read(TimePoint now, const Message& message, const Asked& asked, File& file, const Pending& request);
  void fetch_more(TimePoint now, const OpenKey& key, File& file);
  void read_through_second(TimePoint now, const OpenKey& open);
  bool fetch(TimePoint now, const OpenKey& key, File& file, Interval range);
  void fetched(TimePoint now, const OpenKey& key, std::uint64_t number, const Frame& frame,
               const Element& answer);
  void send_after_all(TimePoint now, const File& file, const std::vector<Message>& reads);
  void sent_on(const OpenKey& open, MessageId id);
  void answered(MessageId id);
  void fetch_for_all(TimePoint now);
  void void_fetched(TimePoint now, File& file);
  bool may_fetch(const OpenKey& key, const File& file);
  std::uint32_t largest_read() const;
  ReadAheadLimits limits() const;

  FarSide& side_;
  static constexpr std::size_t kMostFiles = 4096;    // limit of files that are read ahead
  static constexpr std::size_t kMostAtOnce = 64;     // files examined again when there is room
  static constexpr std::size_t kSwallowedBytes = 512;  // approximate size of a swallowed READ
  static constexpr std::uint32_t kLeastRead =
      4096;  // nothing is fetched from a server that returns less at once

  ReadAheadFile::Sums sums_;
  std::unordered_map<OpenKey, File, OpenKeyHash> files_;
  // Files of which more may be fetched when there is room, or when a change is answered.
  std::set<OpenKey> wanting_;
  OpenKey looked_at_;                       // the last one of these
  KeyedMap<MessageId, OpenKey> at_server_;  // READs with Asked that were sent on
  Fresh fresh_;
  SecondHandles second_handles_{
      side_, [this](TimePoint now, const OpenKey& open) { read_through_second(now, open); }};
  std::optional<Asked> asked_;  // for the next frame
  std::uint64_t numbers_ = 0;
  LearntLimits learnt_;
  std::uint64_t most_ahead_bytes_ = 64 << 20;  // limit of unread bytes, for all files
  bool starved_ = false;                       // waits for the release of ids
  bool ended_ = false;
};

}  // namespace longhaul::smb::smb2
