// SPDX-License-Identifier: Apache-2.0
// The near half's READs (like smb2/near_reads.h): answers them from pushed data (ahead/ahead_cache.h), and
// reports missing ranges to the far half under numbers that are never reused, unlike MIDs. The far half
// swallows such a READ: pushed data answers it, or the server's own response, which comes as an Answer.
// far_reads.h decides which.
#pragma once
#include <memory>
#include <unordered_set>

#include "proxy/modules/ahead/ahead_cache.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/promises.h"
#include "proxy/modules/smb/smb1/local_answers.h"

namespace longhaul::smb::smb1 {

class NearReads {
 public:
  // `account`: the bytes that all flows of this site store ahead. The others outlive this object.
  NearReads(Outputs& out, Connection& connection, const LocalAnswers& local, const Promises& promises,
            modules::Counters& counters, std::shared_ptr<AheadAccount> account)
      : out_(out),
        connection_(connection),
        local_(local),
        promises_(promises),
        counters_(counters),
        cache_(std::move(account)) {}

  void on_surroundings() { tell_allowance(); }
  void opened(const OpenKey& open);
  void forget(const OpenKey& open);

  // A READ of the client on this open. Returns true if it was answered, or passed on after Asked.
  bool request(TimePoint now, const Frame& frame, const Header& header, const ReadRequest& read,
               const Open& open);
  void pushed(TimePoint now, const Ahead& ahead, const Slice& attached);
  // The server's own response to a READ, unless pushed data has answered it.
  void read_through(const Answer& answer, const Slice& data);

  // Data of this open is void; reported once until the client reads again.
  void drop(const Open& open);
  void far_dropped(const Drop& drop) { cache_.far_dropped(drop.open, drop.epoch); }

  // Whether a READ of this session and tree waits for data.
  bool waits_in(std::uint16_t uid, std::uint16_t tid) const;
  bool is_idle() const { return reads_.empty(); }
  // Memory of READs that wait, in addition to what the account counts.
  std::size_t held_bytes() const { return cache_.waiting_bytes(); }

 private:
  void answer(const Header& header, const ReadData& data);
  void tell_allowance();

  // Further READs pass unchanged.
  static constexpr std::size_t kMostReads = 128;

  Outputs& out_;
  Connection& connection_;
  const LocalAnswers& local_;
  const Promises& promises_;
  modules::Counters& counters_;
  AheadCache cache_;
  KeyedMap<MessageNumber, Header> reads_;          // waiting READs, by a number of ours
  std::unordered_set<OpenKey, OpenKeyHash> void_;  // opens not read since their data was dropped
  MessageNumber asked_for_{};
};

}  // namespace longhaul::smb::smb1
