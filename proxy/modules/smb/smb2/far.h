// SPDX-License-Identifier: Apache-2.0
// The far half for SMB2 and SMB3: passes messages between the client and the server (server_leg.h). Its parts
// decide what to add, hold and store: far_opens.h, far_order.h (ordering points), far_watch.h, far_volumes.h,
// far_metadata.h, far_listings.h, far_reads.h, far_aliases.h.
#pragma once
#include <memory>
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
#include "proxy/modules/smb/smb2/held_inputs.h"
#include "proxy/modules/smb/smb2/own_opens.h"
#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/server_leg.h"

namespace longhaul::smb::smb2 {

class Far final : public Half, private FarSide {
 public:
  // `lost`: of all flows of this site; `ends`: of this flow.
  explicit Far(Outputs& out, std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(),
               const LostWrites::Ends& ends = {});

  // The client began with an SMB1 NEGOTIATE that is answered with SMB2, which has used id 0.
  void begun_with_smb1() { leg_.begun_with_smb1(); }

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
  std::size_t state_bytes() const override {
    return connection_.state_bytes() + listings_.state_bytes() + opens_.state_bytes();
  }
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
  OwnRequests& server() override { return leg_; }
  void send(TimePoint now, const Message& message) override;
  void drop(TimePoint now, const Open& open) override;
  Watching watch(TimePoint now, Open& open) override { return watch_.watch(now, open); }
  void on_watched(TimePoint now, const Open& open) override {
    metadata_.on_watched(open);
    listings_.on_watched(now, open);
    reads_.on_watched(now, open);
  }
  void on_noticed(TimePoint, const Open& open) override { opens_.on_noticed(open); }
  bool inject_open(TimePoint now, SessionId session, TreeId tree, const Build& build,
                   const std::vector<Slice>& questions, OpenReply reply) override;
  bool inject_close(TimePoint, SessionId session, TreeId tree, const Build& build, OpenReply reply) override {
    return own_opens_.close(session, tree, build, std::move(reply));
  }
  void answer(TimePoint now, const Header& request, Slice frame) override;
  void hold_behind(std::uint64_t number, const FileName& name) override { order_.begin_own(number, name); }
  void let_go(TimePoint now, std::uint64_t number) override { order_.end_own(now, number); }
  bool has_only_path(const Open& open) override { return paths_.has_only_path(open); }
  void path_is_known(TimePoint now, const Open& open) override { order_.ask_room(now, open); }
  void fence() override {
    losses_.twin_lost();
    out_.abort();
  }
  bool contended(const FileName& name) const override { return oplocks_.contended(name); }
  void on_with(TimePoint now, const Message& message) override;
  void listed(const OpenKey& directory, MessageId listing, std::uint8_t info_class,
              const Slice& entries) override {
    opens_.listed(directory, listing, info_class, entries);
  }

  void own_answered(TimePoint now, const Message& answer, const Connection::Outcome& outcome,
                    const OpenReply& reply);
  void after_response(TimePoint now, const Connection::Outcome& outcome);
  using Input = HeldInputs::Input;
  using Opaque = HeldInputs::Opaque;
  void go_opaque(TimePoint now, Opaque opaque);
  bool holds(Input input);
  void release(TimePoint now);
  void ids_freed(TimePoint now);
  void settle(TimePoint now);

  Outputs& out_;
  modules::Counters counters_;
  Surroundings surroundings_;
  Connection connection_;
  FarOplocks oplocks_;
  ServerLeg leg_;
  OwnOpens own_opens_;
  FarAliases aliases_;
  HeldInputs held_;  // while aliases are opened at the server
  FarLosses losses_;
  FarPaths paths_;
  FarOpens opens_;
  FarOrder order_;
  FarWatch watch_;
  FarVolumes volumes_;
  FarMetadata metadata_;
  FarListings listings_;
  FarReads reads_;
  std::vector<FarPart*> parts_;  // in the order in which they receive messages
  std::optional<modules::Ending> stream_ended_;
  bool end_told_ = false;
};

}  // namespace longhaul::smb::smb2
