// SPDX-License-Identifier: Apache-2.0
// The near half's WRITEs (like smb2/near_writes.h): which may be answered before the server has answered
// them, and how a late error reaches the client. promises/ledger.h is the ledger. FLUSH and requests that set
// a file's attributes or size always wait for the server.
#pragma once
#include <memory>
#include <optional>

#include "proxy/modules/promises/disk_room.h"
#include "proxy/modules/promises/live_promises.h"
#include "proxy/modules/promises/undecided.h"
#include "proxy/modules/smb/promise_policy.h"
#include "proxy/modules/smb/promises.h"
#include "proxy/modules/smb/smb1/local_answers.h"
#include "proxy/modules/smb/smb1/lost_files.h"
#include "proxy/modules/smb/smb1/near_settled.h"

namespace longhaul::smb::smb1 {

// Every condition except room and the open's own history. Pure, so that each condition can be tested.
bool may_be_promised(const Open& open, const Header& header, const WriteRequest& write);

class NearWrites {
 public:
  // `ends`: of this flow, for `lost`. The references outlive this object.
  NearWrites(Outputs& out, Connection& connection, const LocalAnswers& local, const LostFiles& files,
             modules::Counters& counters, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
      : out_(out),
        connection_(connection),
        local_(local),
        files_(files),
        counters_(counters),
        lost_(std::move(lost)),
        ends_(ends),
        settled_(out, connection, promises_, live_) {}
  NearWrites(const NearWrites&) = delete;
  NearWrites& operator=(const NearWrites&) = delete;

  void on_surroundings();
  void on_timeout(TimePoint now) { settled_.on_timeout(now); }
  std::optional<TimePoint> next_timeout() const { return settled_.next_timeout(); }
  void set_wake(const std::function<void()>& wake) { live_.on_news(wake); }

  const Promises& promises() const { return promises_; }
  const LiveLedger& ledger() const { return live_; }
  // Why WRITEs that could be promised are not; `optimised`: there was none.
  modules::Reason reason() const { return policy_.reason(); }

  // For every request of the client: evaluates what it reveals of the client about promises to it.
  void learn_client(const Message& request) { smb1::learn_client(request, policy_); }
  // The file was opened, or an oplock for it or a WRITE on it has arrived: its writes may be promised.
  void active(TimePoint now, const Open& open);
  // A WRITE of the client has arrived; `open`: null if it is not known.
  void requested(TimePoint now, const Open* open);
  // Whether the WRITE may be promised; `open_question`: it is held until that is known.
  std::optional<Promises::Conditions> may_promise(Open& open, const Header& header,
                                                  const WriteRequest& write);
  // Promises the WRITE after that, if there is room in the ledger. Returns true if it was passed on after
  // Promised.
  bool promise(const Open& open, const Frame& frame, const Header& header, const WriteRequest& write,
               Promises::Conditions conditions);
  // For a promise of another kind, whose Kept uses the same numbers.
  MessageNumber next_number() { return ++promised_; }
  // A request is passed on: its response may have to report a late error.
  void passes(const Message& message);
  // The response for the client, possibly with a late error. Some libraries ignore the status of a CLOSE, so
  // if only that could report a loss, returns nullopt: the response is withheld, and the connection is reset
  // when all other promises are settled.
  std::optional<Slice> with_late_error(TimePoint now, const Frame& frame, const Message& answer,
                                       const Pending* request);
  void reset_if_doomed();

  // The server has answered a promised request.
  void moved(TimePoint now) { live_.moved(now); }
  void kept(const Kept& kept);
  void room(const Room& room);
  void marked(const Marked& marked);

  // Its oplock is broken, or returned: no more of its writes are promised.
  void stop(const OpenKey& open) { promises_.stop(open); }
  // No more writes are promised.
  void stop() { stops_ = true; }
  // It was closed, or its FID is about to be reused: no response can report an error any more.
  void over(const Open& open);
  // Outstanding promises are lost: recorded for clients that open those files again.
  void lose(Cause cause) { live_.lose(cause); }
  // Resets the flow, and does the same.
  void abort(Cause cause);
  bool is_aborted() const { return aborted_; }

 private:
  struct Early {
    Header header;
    std::uint32_t length = 0;
  };
  void answer_early(const Early& early);
  void answer_held();
  void review_undecided();
  std::optional<Slice> late_error(const Frame& frame, const Message& answer, const Pending& request,
                                  const std::optional<OpenKey>& of);
  void told_late(const OpenKey& key, Told how = Told::late_error);
  std::optional<LostWrites::File> file_of(const OpenKey& key);

  // Limit of the state until the server answers: beyond it, requests pass unchanged.
  static constexpr std::size_t kMostRemembered = 4096;

  Outputs& out_;
  Connection& connection_;
  const LocalAnswers& local_;
  const LostFiles& files_;
  modules::Counters& counters_;
  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  Promises promises_;
  LivePromises live_{lost_, ends_, promises_, [this](const OpenKey& key) { return file_of(key); },
                     [this](Cause cause) { abort(cause); }};
  NearSettled settled_;
  Undecided undecided_;
  PromisePolicy policy_;
  DiskRoom room_;
  KeyedMap<MessageNumber, Early> writes_;  // by our number: the client may reuse its MID
  // Requests that were passed on and whose responses may report a late error; nullopt: of any open.
  KeyedMap<MessageNumber, std::optional<OpenKey>> carriers_;
  MessageNumber promised_{};
  bool doomed_ = false;  // the connection is reset when all promises are settled
  bool stops_ = false;
  bool aborted_ = false;
};

}  // namespace longhaul::smb::smb1
