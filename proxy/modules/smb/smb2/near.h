// SPDX-License-Identifier: Apache-2.0
// The near half for SMB2 and SMB3: passes every message to the connection's tracking and to its parts, and
// forwards those that none of them takes. The parts decide: near_aliases.h (opens for attributes),
// near_opens.h (opens made ahead), near_reads.h (data read ahead), near_writes.h (early responses),
// near_volumes.h, near_metadata.h, near_listings.h, near_channels.h (other connections of a session).
// near_losses.h informs the client of losses.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "proxy/modules/promises/open_gate.h"
#include "proxy/modules/smb/smb2/contact_watch.h"
#include "proxy/modules/smb/smb2/near_aliases.h"
#include "proxy/modules/smb/smb2/near_channels.h"
#include "proxy/modules/smb/smb2/near_listings.h"
#include "proxy/modules/smb/smb2/near_losses.h"
#include "proxy/modules/smb/smb2/near_metadata.h"
#include "proxy/modules/smb/smb2/near_opens.h"
#include "proxy/modules/smb/smb2/near_reads.h"
#include "proxy/modules/smb/smb2/near_settled.h"
#include "proxy/modules/smb/smb2/near_volumes.h"
#include "proxy/modules/smb/smb2/near_writes.h"

namespace longhaul::smb::smb2 {

class Near final : public Half, private NearSide {
 public:
  // State of all flows of this site: `account`, the bytes that they store ahead; `lost`, their lost writes;
  // `channels`, the sessions that they carry.
  Near(Outputs& out, std::shared_ptr<AheadAccount> account,
       std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(),
       std::shared_ptr<Channels> channels = std::make_shared<Channels>(), const LostWrites::Ends& ends = {});

  void frame_from_lan(TimePoint now, const Frame& frame) override;
  void frame_from_stream(TimePoint now, const Frame& frame) override;
  void from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_lost() override;
  void seals() override { connection_.sessions().seals(); }
  void cannot_open(modules::Reason reason) override { connection_.sessions().cannot_open(reason); }
  void lan_opaque(TimePoint now) override;
  void stream_opaque(TimePoint now) override;
  bool quiet() const override;
  Leave gives_up() override;
  std::uint64_t awaited() const override { return losses_.awaited(); }
  void arrived(std::uint64_t outputs) override { losses_.arrived(outputs); }
  modules::Reason leave_alone() const override;
  modules::Reason reason() const override {
    return connection_.sessions().any_untouchable() ? connection_.sessions().why_untouchable()
                                                    : writes_.reason();
  }
  void set_wake(const std::function<void()>& wake) override { writes_.set_wake(wake); }
  void on_surroundings(TimePoint now, const Surroundings& surroundings) override;
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  const modules::Counters& counters() const override { return counters_; }
  std::size_t state_bytes() const override {
    return connection_.state_bytes() + opens_.held_bytes() + aliases_.held_bytes() + metadata_.held_bytes() +
           listings_.held_bytes() + reads_.held_bytes() + gate_.held_bytes();
  }
  const NearWrites& writes() const { return writes_; }

 private:
  Connection& connection() override { return connection_; }
  Outputs& out() override { return out_; }
  modules::Counters& counters() override { return counters_; }
  const Surroundings& surroundings() const override { return surroundings_; }
  void answer(TimePoint now, MessageId id, Slice frame, Told told) override;
  void pass_on(TimePoint now, const Message& message) override;
  void drop_file(const FileGroup& file) override { reads_.drop_file(file); }
  void has_read(const Open& open, std::uint64_t offset, std::uint32_t asked, std::uint32_t got) override {
    metadata_.has_read(open, offset, asked, got);
  }
  void answer_create(TimePoint now, const Message& request, Slice answer,
                     const std::vector<Slice>& questions) override;
  void answer_compound(TimePoint now, const Message& request, Slice answer) override;
  void again(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  std::optional<bool> may_be_bypassed(SessionId session) const override {
    return channels_.may_be_bypassed(session);
  }
  bool has_promised() const override { return writes_.has_promised(); }
  bool owes(const Open& open) const override { return writes_.owes(open.key); }
  void mark(const Open& open) override { writes_.mark(open); }
  void unmark(const OpenKey& open) override { writes_.unmark(open); }
  void wasted(std::uint64_t bytes) override { reads_.wasted(bytes); }

  void effects(TimePoint now, const Connection::Outcome& outcome);
  void take_frame(TimePoint now, const Frame& frame);
  void request(TimePoint now, const Frame& frame);
  bool must_wait(TimePoint now, const Message& message);
  void review_gate(TimePoint now);
  void watch_contact(TimePoint now, const link::Contact& contact);
  void give_up_same_name(TimePoint now, const Message& message);
  void doubt(const OpenKey& key);
  void stop_answering_by(TimePoint now, const OpenKey& key);
  bool owes() const;
  bool others_owe() const;  // parts other than the writes
  void settle(TimePoint now);

  Outputs& out_;
  modules::Counters counters_;
  Surroundings surroundings_;
  ContactWatch contact_;
  Connection connection_;
  NearChannels channels_;
  NearOpens opens_;
  NearAliases aliases_;
  NearVolumes volumes_;
  NearMetadata metadata_;
  NearListings listings_;
  NearSettled settled_;
  NearWrites writes_;
  NearReads reads_;
  NearLosses losses_;
  OpenGate<Frame> gate_;
  std::vector<NearPart*> asked_in_order_;     // requests
  std::vector<NearPart*> answered_in_order_;  // responses, and the twin's messages
  bool used_ = false;                         // a request was answered here, or data pushed
  bool reset_ = false;                        // the client's connection was reset
};

}  // namespace longhaul::smb::smb2
