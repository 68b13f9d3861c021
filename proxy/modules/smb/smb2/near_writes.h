// SPDX-License-Identifier: Apache-2.0
// The near half's part for writes: which WRITE may be answered before the server has answered it, and how a
// late error reaches the client. promises/ledger.h is the ledger; far_order.h makes ordering points wait.
//
// A WRITE is answered early only if the client could have stored it in its own cache: see may_be_promised().
// Its frame is sent at once after Promised; the far half returns the server's response as Kept. A late error
// is returned in all of the open's later responses to WRITE, FLUSH and CLOSE. If there will be none, the
// connection is reset. FLUSH and SET_INFO always wait for the server.
#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "proxy/modules/promises/disk_room.h"
#include "proxy/modules/promises/live_promises.h"
#include "proxy/modules/promises/undecided.h"
#include "proxy/modules/smb/promise_policy.h"
#include "proxy/modules/smb/promises.h"
#include "proxy/modules/smb/smb2/client_habits.h"
#include "proxy/modules/smb/smb2/compound.h"
#include "proxy/modules/smb/smb2/lost_files.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

inline DiskTree disk_tree(SessionId session, TreeId tree) { return {.session = session, .tree = tree}; }

class NearWrites final : public NearPart {
 public:
  NearWrites(NearSide& side, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
      : side_(side), lost_(std::move(lost)), ends_(ends) {}
  NearWrites(const NearWrites&) = delete;
  NearWrites& operator=(const NearWrites&) = delete;

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  // Takes WRITEs that are promised; READs of an open with unfinished promises, which it passes on because
  // data read ahead may be older; CANCELs of writes that were answered.
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  // Puts a late error into a response that must report it.
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  // Kept (of writes), Room and Marked; answers Break with Broken.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_surroundings(TimePoint now, const Surroundings& surroundings) override;
  bool quiet() const override { return !promises_.owes() && promises_.waiting() == 0; }

  // Whether a promise is not known to be kept, or a late error not reported: an end of the connection must be
  // a reset.
  bool owes() const { return promises_.owes(); }
  bool has_promised() const { return promises_.waiting() != 0; }
  bool owes(const OpenKey& open) const { return promises_.waiting(open) != 0 || promises_.lost(open); }
  // The connection's files, as named in records of lost writes.
  const LostFiles& files() const { return files_; }
  const LiveLedger& ledger() const { return live_; }
  // Whether the client's connection must be reset when all promises are settled: only a CLOSE could have
  // reported the loss, and some libraries ignore its status.
  bool is_doomed() const { return doomed_; }
  const PromiseAudit& audit() const { return promises_.audit(); }
  // No more writes are promised.
  void stop() { stops_ = true; }
  // Why WRITEs that could be promised are not; `optimised`: there was none.
  modules::Reason reason() const { return policy_.reason(); }
  void lose(Cause cause) { live_.lose(cause); }
  // Before writes of the open are promised, and when no more are.
  void mark(const Open& open);
  void unmark(const OpenKey& open) { live_.unmark(open); }
  void set_wake(const std::function<void()>& wake) { live_.on_news(wake); }

 private:
  struct Waiting {
    Header header;
    std::uint32_t length = 0;
    bool answered = false;
    Counted promised;
  };
  struct Closing {  // a written file whose CLOSE was answered early
    LostWrites::File file;
    std::uint64_t end = 0;
  };
  Taken write(TimePoint now, const Message& message);
  // Whether promises may be made on this open at all; if not, the reason is stored for display.
  bool policy_allows(Open& open);
  void answer_early(TimePoint now, MessageId id);
  void answer_held(TimePoint now);
  void review_undecided(TimePoint now);
  void kept(TimePoint now, const Kept& kept);
  void ended(const Open& open);
  std::optional<LostWrites::File> file_of(const OpenKey& key);
  LostWrites::File lost_file(const Open& open) const { return files_.of(open); }
  void count();

  NearSide& side_;
  std::shared_ptr<LostWrites> lost_;
  Promises promises_;
  DiskRoom room_;
  // The far half queries the space, and marks the file, right after the response that opened it.
  Undecided undecided_;
  KeyedMap<MessageId, Waiting> waiting_;  // promised or held
  KeyedMap<MessageId, Closing> closing_;
  // Unanswered requests about sessions and trees. A signed one may meet an id of ours at the server, which
  // ends the connection (far.cc): so nothing may be promised after it.
  KeyedSet<MessageId> setups_;
  LostWrites::Ends ends_;
  LostFiles files_{*lost_, ends_, [this]() -> Connection& { return side_.connection(); }};
  std::vector<LostWrites::File> late_files_;  // files of late_ that no response has reported yet
  bool only_close_tells_ = false;             // for these
  bool doomed_ = false;
  bool stops_ = false;
  ClientHabits habits_;
  std::vector<NewStatus> late_;  // for the message that was processed last
  PromisePolicy policy_;
  // Credits that the server granted beyond those of early responses: for the next ones.
  std::int64_t credits_due_ = 0;
  LivePromises live_{lost_, ends_, promises_, [this](const OpenKey& key) { return file_of(key); },
                     [this](Cause cause) {
                       lose(cause);
                       side_.out().abort();
                     }};
};

}  // namespace longhaul::smb::smb2
