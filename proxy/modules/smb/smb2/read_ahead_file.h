// SPDX-License-Identifier: Apache-2.0
// One open that the far half reads ahead: what it should fetch next, has fetched and pushed, and the client's
// READs that wait for that. Sends nothing to the server; far_reads.h does, and decides when it may.
#pragma once
#include <optional>
#include <vector>

#include "proxy/modules/ahead/counted_read_ahead.h"
#include "proxy/modules/ahead/fetches.h"
#include "proxy/modules/ahead/learnt_limits.h"
#include "proxy/modules/ahead/pushes.h"
#include "proxy/modules/ahead/swallowed.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

class ReadAheadFile {
 public:
  // Sums over all files of a connection; they outlive the files.
  struct Sums {
    std::uint64_t ahead_bytes = 0;  // fetched, and not read
    std::size_t swallowed = 0;      // number of waiting READs
  };
  ReadAheadFile(const Open& open, const ReadAheadLimits& limits, Sums& sums)
      : key_(open.key), policy_(sums.ahead_bytes), swallowed_(sums.swallowed) {
    policy_.opened(open.end_of_file, limits);
  }

  const OpenKey& key() const { return key_; }

  // ---- invalidation
  // The oplock or lease no longer protects cached data, or the server's response was unexpected: nothing more
  // is fetched.
  void make_unusable() { is_usable_ = false; }
  bool is_usable() const { return is_usable_; }
  // Data read until now is void. void_fetched() follows.
  Drop drop() { return Drop{key_, ++stamp_.far}; }
  void near_dropped(std::uint32_t epoch) { stamp_.near = epoch; }
  // Returns READs that must be sent after all.
  std::vector<Message> void_fetched();
  LearntLimits::Closed closed() const;

  // ---- the client's READs
  void near_has_seen(std::uint64_t pushes) { pushes_.seen(pushes); }
  void on_read(std::uint64_t offset, std::uint64_t length, const ReadAheadLimits& limits) {
    policy_.on_read(offset, length, limits);
  }
  void missed(std::uint64_t offset, std::uint64_t length) { policy_.missed(offset, length); }
  // What the near half lacks of the READ, even when it has received everything under way.
  IntervalSet missing_of(const Asked& asked) const;
  // What of this is not being fetched either.
  IntervalSet holes_in(IntervalSet missing) const;
  bool may_swallow(const Stamp& asked) const { return asked == stamp_ && swallowed_.size() < kMostSwallowed; }
  void swallow(const Message& read, IntervalSet missing) { swallowed_.add(kept(read), std::move(missing)); }
  // READs for which nothing is under way any more.
  std::vector<Message> take_stranded();
  // The READ is sent to the server without the near half's knowledge; until it is answered there.
  void sent_on(MessageId read) { at_server_.insert(read); }
  void answered_by_server(MessageId read) { at_server_.erase(read); }

  // ---- fetching
  bool may_push() const { return pushes_.size() < kMostPushes; }
  bool may_fetch() const { return fetches_.size() < kMostFetches; }
  std::optional<Interval> next(const ReadAheadLimits& limits) { return policy_.next(limits); }
  void fetch(std::uint64_t number, Interval range) { fetches_.begin(number, range); }
  enum class Came : std::uint8_t { unexpected, in_part, in_full };
  // The response to that READ; its data is sent to the near half.
  Came fetched(std::uint64_t number, const Frame& frame, const Element& answer, Outputs& out);

 private:
  void push(std::uint64_t offset, const Slice& bytes, Outputs& out);

  // Limits per file: the cost of a message grows with them.
  static constexpr std::size_t kMostPushes = 1024, kMostFetches = 128, kMostSwallowed = 32;

  OpenKey key_;
  CountedReadAhead policy_;
  Stamp stamp_;
  bool is_usable_ = true;
  Pushes pushes_;
  Fetches fetches_;               // under this stamp
  Swallowed<Message> swallowed_;  // everything that these lack is being fetched
  KeyedSet<MessageId> at_server_;
};

}  // namespace longhaul::smb::smb2
