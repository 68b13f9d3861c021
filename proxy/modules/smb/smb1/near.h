// SPDX-License-Identifier: Apache-2.0
// The near half for SMB1, at the client's side: lets its parts answer the requests that they may, and passes
// on the rest, with information for the far half. near_ahead.h has data fetched in advance; near_writes.h and
// near_closes.h answer early; near_losses.h reports lost writes. Only this half decides which requests may be
// answered early.
#pragma once
#include <memory>
#include <optional>

#include "proxy/modules/promises/open_gate.h"
#include "proxy/modules/smb/smb1/near_losses.h"
#include "proxy/modules/smb/smb1/near_oplocks.h"
#include "proxy/modules/smb/smb1/raw_transfer.h"

namespace longhaul::smb::smb1 {

class Near final : public Half {
 public:
  // `account`: the bytes that all flows of this site store ahead. `ends`: of this flow, for `lost`.
  Near(Outputs& out, std::shared_ptr<AheadAccount> account,
       std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(), const LostWrites::Ends& ends = {})
      : out_(out),
        lost_(std::move(lost)),
        files_(*lost_, ends, connection_),
        writes_(out, connection_, local_, files_, counters_, lost_, ends),
        closes_(out, *lost_, files_),
        losses_(out, files_, lost_, ends),
        ahead_(out, connection_, local_, writes_.promises(), counters_, std::move(account)),
        gate_(*lost_, writes_.ledger()) {}
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
  void seals() override { connection_.negotiated().seals(); }
  void cannot_open(modules::Reason reason) override { connection_.negotiated().cannot_open(reason); }
  bool quiet() const override;
  Leave gives_up() override;
  std::uint64_t awaited() const override { return losses_.awaited(); }
  void arrived(std::uint64_t outputs) override { losses_.arrived(outputs); }
  modules::Reason leave_alone() const override;
  modules::Reason reason() const override {
    const modules::Reason why = not_understood_ ? modules::Reason(reasons::smb_not_understood)
                                                : connection_.negotiated().why_untouchable();
    return why != reasons::optimised ? why : writes_.reason();
  }
  void set_wake(const std::function<void()>& wake) override { writes_.set_wake(wake); }
  void on_surroundings(TimePoint now, const Surroundings& surroundings) override;
  void twin_lost() override { writes_.lose(Cause::link_lost); }
  void on_timeout(TimePoint now) override {
    review_gate(now);
    writes_.on_timeout(now);
  }
  std::optional<TimePoint> next_timeout() const override {
    const auto settled = writes_.next_timeout(), gate = gate_.next_timeout();
    return !gate || (settled && *settled < *gate) ? settled : gate;
  }
  const modules::Counters& counters() const override { return counters_; }
  std::size_t state_bytes() const override {
    return connection_.state_bytes() + ahead_.held_bytes() + gate_.held_bytes();
  }

  const PromiseAudit& audit() const { return writes_.promises().audit(); }

 private:
  void pass_gate(TimePoint now, const Frame& frame);
  void take_frame(TimePoint now, const Frame& frame);
  void goes_unread();
  bool must_wait(TimePoint now, const Message& message);
  void review_gate(TimePoint now);
  void request(TimePoint now, const Frame& frame, const Message& message);
  bool answers(TimePoint now, const Frame& frame, const Message& message);
  bool answers_open(TimePoint now, const Message& message);
  bool write(const Frame& frame, const Message& message);
  bool close(const Frame& frame, const Message& message);
  void reply(TimePoint now, const Frame& frame, const Message& message);
  void over(const Open& open);
  void watch_contact(TimePoint now);
  void kept(TimePoint now, const Kept& kept);

  Outputs& out_;
  modules::Counters counters_;
  Connection connection_;
  LocalAnswers local_{connection_};
  std::shared_ptr<LostWrites> lost_;  // the parts refer to it
  LostFiles files_;
  NearWrites writes_;
  NearCloses closes_;
  NearLosses losses_;
  NearAhead ahead_;
  NearOplocks oplocks_{out_, connection_, local_, ahead_, writes_, closes_, counters_};
  OpenGate<Frame> gate_;
  RawTransfer raw_;
  bool not_understood_ = false;
  bool unheard_ = false;
};

}  // namespace longhaul::smb::smb1
