// SPDX-License-Identifier: Apache-2.0
// The far half for SMB2 and SMB3: keeps the server's connection in order (ids, credits, our own requests and
// their answers) and asks its parts what to add, hold and keep: far_opens.h, far_order.h (ordering points),
// far_watch.h, far_volumes.h, far_metadata.h, far_listings.h, far_reads.h, far_aliases.h.
#pragma once
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "proxy/modules/smb/smb2/far_aliases.h"
#include "proxy/modules/smb/smb2/far_listings.h"
#include "proxy/modules/smb/smb2/far_losses.h"
#include "proxy/modules/smb/smb2/far_metadata.h"
#include "proxy/modules/smb/smb2/far_opens.h"
#include "proxy/modules/smb/smb2/far_oplocks.h"
#include "proxy/modules/smb/smb2/far_order.h"
#include "proxy/modules/smb/smb2/far_paths.h"
#include "proxy/modules/smb/smb2/far_reads.h"
#include "proxy/modules/smb/smb2/far_volumes.h"
#include "proxy/modules/smb/smb2/far_watch.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class Far final : public Half, private FarSide {
 public:
  // `lost`: of all flows of this site; `ends`: of this one.
  explicit Far(Outputs& out, std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(),
               const LostWrites::Ends& ends = {});

  // The client began with an SMB1 NEGOTIATE that is answered in SMB2: it has taken id 0.
  void begun_with_smb1() { (void)ids_.forward(0, 1, MessageIds::Renumber::forbidden); }

  void frame_from_lan(TimePoint now, const Frame& frame) override;
  void frame_from_stream(TimePoint now, const Frame& frame) override;
  void from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_lost() override { losses_.twin_lost(); }
  void seals() override { connection_.sessions().seals(); }
  void cannot_open(modules::Reason reason) override { connection_.sessions().cannot_open(reason); }
  void lan_opaque(TimePoint now) override;
  void stream_opaque(TimePoint now) override;
  bool quiet() const override;
  modules::Reason leave_alone() const override;
  modules::Reason reason() const override { return connection_.sessions().why_untouchable(); }
  std::size_t queued_bytes() const override;
  std::size_t state_bytes() const override { return connection_.state_bytes() + listings_.state_bytes(); }
  void set_wake(const std::function<void()>& wake) override { losses_.set_wake(wake); }
  void on_surroundings(TimePoint now, const Surroundings& surroundings) override;
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  const modules::Counters& counters() const override { return counters_; }

 private:
  Connection& connection() override { return connection_; }
  Outputs& out() override { return out_; }
  modules::Counters& counters() override { return counters_; }
  const Surroundings& surroundings() const override { return surroundings_; }
  bool inject(TimePoint now, SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
              Reply reply) override;
  bool inject_awaited(TimePoint now, SessionId session, TreeId tree, const Build& build,
                      Reply reply) override;
  bool can_inject(std::uint16_t charge) const override;
  bool inject_owed(TimePoint now, SessionId session, TreeId tree, const Build& build) override;
  bool acknowledge(TimePoint now, SessionId session, TreeId tree, const Build& build) override;
  bool owe(SessionId session, TreeId tree, const Build& build, std::uint64_t keep);
  bool listen(TimePoint now, SessionId session, TreeId tree, const Build& build, Begun begun,
              Reply reply) override;
  void send(TimePoint now, const Message& message) override;
  void drop(TimePoint now, const Open& open) override;
  Watching watch(TimePoint now, Open& open) override { return watch_.watch(now, open); }
  void on_watched(TimePoint now, const Open& open) override {
    metadata_.on_watched(now, open);
    listings_.on_watched(now, open);
    reads_.on_watched(now, open);
  }
  void on_noticed(TimePoint, const Open& open) override { opens_.on_noticed(open); }
  bool inject_open(TimePoint now, SessionId session, TreeId tree, const Build& build,
                   const std::vector<Slice>& questions, OpenReply reply) override;
  bool inject_close(TimePoint now, SessionId session, TreeId tree, const Build& build,
                    OpenReply reply) override;
  // Our own request of that form, under a number that no client has.
  std::optional<Message> own_open(SessionId session, TreeId tree, const Build& build);
  Reply tracked(MessageId own, OpenReply reply);
  void answer(TimePoint now, const Header& request, Slice frame) override;
  void hold_behind(std::uint64_t number, const FileName& name) override { order_.begin_own(number, name); }
  void let_go(TimePoint now, std::uint64_t number) override { order_.end_own(now, number); }
  bool has_only_path(TimePoint now, const Open& open) override { return paths_.has_only_path(now, open); }
  void path_is_known(TimePoint now, const Open& open) override { order_.ask_room(now, open); }
  void fence() override {
    losses_.twin_lost();
    out_.abort();
  }
  bool contended(const FileName& name) const override { return oplocks_.contended(name); }
  void on_with(TimePoint now, const Message& message) override;
  void listed(const OpenKey& directory, std::uint64_t listing, std::uint8_t info_class,
              const Slice& entries) override {
    opens_.listed(directory, listing, info_class, entries);
  }

  // `keep`: of the ids that are free, for the client.
  std::optional<MessageId> add(SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
                               Reply reply, std::uint64_t keep);
  void after_response(TimePoint now, const Connection::Outcome& outcome);
  // A client's request under way: the ids that its elements have so far.
  struct Outgoing {
    Message message;
    std::vector<MessageId> ids;
  };
  enum class Sent { yes, waits };
  Sent try_send(Outgoing& outgoing);
  void cancel(const Message& message);
  void wait_behind(const Message& cancel);
  bool own_answer(TimePoint now, const Message& message);
  Message in_clients_numbers(Message message);
  // Messages from the client's side wait while aliases are opened at the server.
  struct Opaque {
    bool of_server = false;  // else of the client
  };
  using Input = std::variant<Frame, std::pair<TwinMessage, Slice>, modules::Ending, Opaque>;
  void go_opaque(TimePoint now, Opaque opaque);
  bool holds(Input input);
  static std::size_t bytes_of(const Input& input);
  void wait(Outgoing outgoing);
  void release(TimePoint now);
  std::uint64_t kept_for_client() const;
  std::uint64_t kept_from_awaited() const;
  bool may_free_ids() const;
  void ids_freed(TimePoint now);
  std::uint16_t lacking() const;
  void burn(TimePoint now);
  void settle(TimePoint now);

  Outputs& out_;
  modules::Counters counters_;
  Surroundings surroundings_;
  Connection connection_;
  MessageIds ids_;
  KeyedMap<MessageId, Reply> own_;        // our requests, by the server's number
  KeyedMap<MessageId, Begun> beginning_;  // of these: those that the server may leave pending
  KeyedMap<MessageId, Reply> listening_;  // that it has left pending
  KeyedSet<MessageId> at_server_;         // the client's requests without a final answer, by its numbers
  KeyedSet<MessageId> pended_;            // of these: with an interim answer, which has brought its credits
  std::deque<Outgoing> waiting_;          // for ids, in order
  std::size_t queued_bytes_ = 0;          // of those
  std::unordered_map<MessageId, std::size_t, KeyedHash> waiting_ids_;  // of those, how often
  FarAliases aliases_;
  std::deque<Input> held_;  // in order
  std::size_t held_bytes_ = 0;
  FarOplocks oplocks_;
  FarLosses losses_;
  FarPaths paths_;
  FarOpens opens_;
  FarOrder order_;
  FarWatch watch_;
  FarVolumes volumes_;
  FarMetadata metadata_;
  FarListings listings_;
  FarReads reads_;
  std::vector<FarPart*> parts_;  // in the order in which messages are offered
  MessageId next_own_open_;
  bool burning_ = false;
  bool touched_ = false;  // a request was added here, or answered at the near half
  bool opaque_ = false;   // the client's way
  std::optional<modules::Ending> stream_ended_;
  bool end_told_ = false;
  bool doomed_ = false;  // reset when all promises are settled
};

}  // namespace longhaul::smb::smb2
