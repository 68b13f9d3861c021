// SPDX-License-Identifier: Apache-2.0
// The near half for SMB1, at the client's side: answers READs from data that the far half pushed, WRITEs and
// CLOSEs that the client could have kept in its own cache, searches and queries about files (near_searches.h,
// near_questions.h); passes on the rest, with information for the far half. Only this half decides what may
// be answered early.
#pragma once
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "proxy/modules/ahead/ahead_cache.h"
#include "proxy/modules/promises/disk_room.h"
#include "proxy/modules/promises/live_promises.h"
#include "proxy/modules/promises/open_gate.h"
#include "proxy/modules/promises/telling.h"
#include "proxy/modules/promises/undecided.h"
#include "proxy/modules/smb/promise_policy.h"
#include "proxy/modules/smb/promises.h"
#include "proxy/modules/smb/silent_clients.h"
#include "proxy/modules/smb/smb1/lost_files.h"
#include "proxy/modules/smb/smb1/near_looks.h"
#include "proxy/modules/smb/smb1/near_questions.h"
#include "proxy/modules/smb/smb1/near_searches.h"
#include "proxy/modules/smb/smb1/near_settled.h"
#include "proxy/modules/smb/smb1/raw_transfer.h"

namespace longhaul::smb::smb1 {

// Every condition except room and the open's own history. Pure, so that each condition can be tested.
bool may_be_promised(const Open& open, const Header& header, const WriteRequest& write);

class Near final : public Half {
 public:
  // `account`: the bytes that all flows of this site hold ahead. `ends`: of this flow, for `lost`.
  Near(Outputs& out, std::shared_ptr<AheadAccount> account,
       std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(), const LostWrites::Ends& ends = {})
      : out_(out),
        cache_(std::move(account)),
        lost_(std::move(lost)),
        ends_(ends),
        settled_(out, connection_, promises_, live_),
        searches_(out, connection_, counters_),
        questions_(out, connection_, promises_, counters_),
        looks_(out, connection_) {}
  Near(const Near&) = delete;
  Near& operator=(const Near&) = delete;

  void frame_from_lan(TimePoint now, const Frame& frame) override;
  void frame_from_stream(TimePoint now, const Frame& frame) override;
  void from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void lan_opaque(TimePoint now) override;
  void stream_opaque(TimePoint now) override;
  Bare bare_from_lan() const override { return raw_.bare_from_client(); }
  Bare bare_from_stream() const override { return raw_.bare_from_server(); }
  void seals() override { connection_.seals(); }
  void cannot_open(modules::Reason reason) override { connection_.cannot_open(reason); }
  bool quiet() const override;
  Leave gives_up() override;
  std::uint64_t awaited() const override { return telling_.awaited(); }
  void arrived(std::uint64_t outputs) override { telling_.arrived(outputs); }
  modules::Reason leave_alone() const override;
  modules::Reason reason() const override {
    const modules::Reason why =
        not_understood_ ? modules::Reason(reasons::smb_not_understood) : connection_.why_untouchable();
    return why != reasons::optimised ? why : policy_.reason();
  }
  void set_wake(const std::function<void()>& wake) override { live_.on_news(wake); }
  void on_surroundings(TimePoint now, const Surroundings& surroundings) override;
  void twin_lost() override { live_.lose(Cause::link_lost); }
  void on_timeout(TimePoint now) override {
    review_gate(now);
    settled_.on_timeout(now);
  }
  std::optional<TimePoint> next_timeout() const override {
    const auto settled = settled_.next_timeout(), gate = gate_.next_timeout();
    return !gate || (settled && *settled < *gate) ? settled : gate;
  }
  const modules::Counters& counters() const override { return counters_; }
  std::size_t state_bytes() const override {
    return connection_.state_bytes() + questions_.held_bytes() + searches_.held_bytes() +
           looks_.held_bytes() + cache_.waiting_bytes() + gate_.held_bytes();
  }

  const PromiseAudit& audit() const { return promises_.audit(); }

 private:
  struct Closing {  // a CLOSE that is passed on behind Promised
    std::uint16_t fid = 0;
    Interval range;                           // what its failure may have lost
    std::optional<LostWrites::File> written;  // if anything was
  };
  struct Early {  // a WRITE that is passed on behind Promised
    Header header;
    std::uint32_t length = 0;
  };
  void pass_gate(TimePoint now, const Frame& frame);
  void take_frame(TimePoint now, const Frame& frame);
  void client_goes_on();
  void goes_unread();
  bool must_wait(TimePoint now, const Message& message);
  void review_gate(TimePoint now);
  void request(TimePoint now, const Frame& frame, const Message& message);
  void reply(TimePoint now, const Frame& frame, const Message& message);
  bool read(TimePoint now, const Frame& frame, const Message& message);
  bool write(const Frame& frame, const Message& message);
  void active(TimePoint now, const Open& open);
  void review_undecided();
  void answer_held();
  bool close(const Frame& frame, const Message& message);
  bool look(TimePoint now, const Message& message);
  bool keeps_handle(const Open& open);
  void give_up_same_name(const FileName& name);
  void void_by(const Message& message);
  void watch_contact(TimePoint now);
  void drop(const Open& open);
  void tell_allowance();
  void read_through(const Answer& answer, const Slice& data);
  void answer_read(const Header& header, const ReadData& data);
  void answer_early(const Early& early);
  void kept(const Kept& kept);
  void taken_back(const Break& message);
  void note_carrier(const Message& message);
  std::optional<Slice> with_late_error(const Frame& frame, const Message& answer, const Pending& request,
                                       const std::optional<OpenKey>& of);
  void reset_if_doomed();
  void over(const Open& open);
  void abort(Cause cause);
  LostWrites::File lost_file(const Open& open) const { return files_.of(open); }
  std::optional<LostWrites::File> file_of(const OpenKey& key);
  bool goes_on_with_lost(const Message& message);
  bool is_told_by_reset(const Message& message);
  void say_who();
  void told_late(const OpenKey& key, Told how = Told::late_error);
  bool features(bool Features::*feature) const {
    return surroundings_.features.*feature && connection_.is_ready() && !lan_over_ && !stream_over_;
  }
  NearQuestions::Answers questions_may_be_answered() const {
    return features(&Features::metadata) ? NearQuestions::Answers::yes : NearQuestions::Answers::no;
  }

  Outputs& out_;
  modules::Counters counters_;
  Surroundings surroundings_;
  Connection connection_;
  AheadCache cache_;
  Promises promises_;
  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  Telling telling_{*lost_};
  LostFiles files_{*lost_, ends_, connection_};
  Unguarded unguarded_{lost_, ends_};
  LivePromises live_{lost_, ends_, promises_, [this](const OpenKey& key) { return file_of(key); },
                     [this](Cause cause) { abort(cause); }};
  OpenGate<Frame> gate_{*lost_, live_};
  Undecided undecided_;
  NearSettled settled_;
  bool has_said_who_ = false;
  PromisePolicy policy_;
  bool doomed_ = false;  // reset when all promises are settled
  bool stops_ = false;   // nothing is promised any more
  NearSearches searches_;
  NearQuestions questions_;
  NearLooks looks_;
  RawTransfer raw_;
  DiskRoom room_;
  // READs that wait for pushed data, and state until the server answers: beyond that, requests pass like any
  // other.
  static constexpr std::size_t kMostReads = 128, kMostRemembered = 4096;
  KeyedMap<MessageNumber, Header> reads_;          // that wait, by a number of ours
  KeyedMap<MessageNumber, Early> writes_;          // by our number: the client may use its MID again
  KeyedMap<MessageNumber, Closing> closes_;        // the same
  std::unordered_set<OpenKey, OpenKeyHash> void_;  // nothing was read since known data was dropped
  // Requests that were passed on and whose answers may carry a late error; none: of any open.
  KeyedMap<MessageNumber, std::optional<OpenKey>> carriers_;
  MessageNumber promised_ = 0;
  MessageNumber asked_for_ = 0;
  bool lan_over_ = false;     // the client sends nothing more that we can parse
  bool stream_over_ = false;  // the same of the server
  bool not_understood_ = false;
  bool unheard_ = false;
  bool aborted_ = false;
};

}  // namespace longhaul::smb::smb1
