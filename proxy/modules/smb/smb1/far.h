// SPDX-License-Identifier: Apache-2.0
// The far half for SMB1, at the server's side: completes everything that the client believes to be done
// before requests that depend on it (server_leg.h), converts the server's responses to promised requests into
// Kept, and calls its parts: far_oplocks.h and oplock_returns.h, far_reads.h, far_searches.h,
// far_questions.h, far_volumes.h, far_watch.h.
#pragma once
#include <optional>

#include "proxy/modules/smb/smb1/far_looks.h"
#include "proxy/modules/smb/smb1/far_losses.h"
#include "proxy/modules/smb/smb1/far_oplocks.h"
#include "proxy/modules/smb/smb1/far_questions.h"
#include "proxy/modules/smb/smb1/far_reads.h"
#include "proxy/modules/smb/smb1/far_searches.h"
#include "proxy/modules/smb/smb1/far_volumes.h"
#include "proxy/modules/smb/smb1/far_watch.h"
#include "proxy/modules/smb/smb1/oplock_returns.h"

namespace longhaul::smb::smb1 {

class Far final : public Half {
 public:
  // `lost`: of all flows of this site; `ends`: of this flow.
  explicit Far(Outputs& out, std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(),
               const LostWrites::Ends& ends = {})
      : out_(out),
        losses_(connection_, std::move(lost), ends),
        leg_(out),
        reads_(out, leg_, connection_, counters_),
        watch_(
            out, leg_, connection_, counters_, [this](const OpenKey& open) { reads_.drop(open); },
            [this](const OpenKey& search) { searches_.changed(search); }),
        searches_(out, leg_, connection_, watch_, counters_),
        questions_(out, leg_, connection_, counters_),
        volumes_(out, leg_, connection_, counters_),
        looks_(out, leg_, connection_, counters_) {}

  ~Far() override { lose_doubtful(Cause::flow_cut); }  // as in smb2/far_losses.h
  Far(const Far&) = delete;
  Far& operator=(const Far&) = delete;

  void frame_from_lan(TimePoint now, const Frame& frame) override;
  void frame_from_stream(TimePoint now, const Frame& frame) override;
  void from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_lost() override { lose_doubtful(Cause::near_vanished); }
  void lan_opaque(TimePoint now) override;
  void stream_opaque(TimePoint now) override;
  Bare bare_from_lan() const override { return leg_.raw().bare_from_server(); }
  Bare bare_from_stream() const override { return leg_.raw().bare_from_client(); }
  void seals() override { connection_.negotiated().seals(); }
  void cannot_open(modules::Reason reason) override { connection_.negotiated().cannot_open(reason); }
  bool quiet() const override { return leg_.is_idle() && reads_.is_idle() && returns_.is_idle(); }
  modules::Reason leave_alone() const override;
  std::size_t queued_bytes() const override { return leg_.queued_bytes(); }
  std::size_t state_bytes() const override { return connection_.state_bytes() + searches_.held_bytes(); }
  void set_wake(const std::function<void()>& wake) override { losses_.set_wake(wake); }
  void on_surroundings(TimePoint now, const Surroundings& surroundings) override;
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  const modules::Counters& counters() const override { return counters_; }

 private:
  void request(TimePoint now, const Frame& frame, const Message& message);
  void promised(TimePoint now, const Promised& told, const Frame& frame, const Message& message);
  Slice with_oplock_request(const Frame& frame, const Message& message);
  void server_break(TimePoint now, const Frame& frame, const Message& message);
  void answered(TimePoint now, const Frame& frame, const Message& message);
  void lose_doubtful(Cause cause) {
    losses_.lose_doubtful(cause, stream_over_ ? FarLosses::Stream::ended : FarLosses::Stream::open,
                          leg_.owed());
  }
  void settle();
  void tell_marked();

  Outputs& out_;
  modules::Counters counters_;
  Surroundings surroundings_;
  Connection connection_;
  FarLosses losses_;
  ServerLeg leg_;
  FarReads reads_;
  FarWatch watch_;
  FarSearches searches_;
  FarQuestions questions_;
  FarVolumes volumes_;
  FarLooks looks_;
  FarOplocks oplocks_{connection_};
  OplockReturns returns_{leg_, connection_};
  std::optional<Asked> asked_;        // about the next frame
  std::optional<Promised> promised_;  // about the next frame
  bool lan_over_ = false;             // the server's responses can no longer be parsed
  bool stream_over_ = false;          // ended, or no longer parsable
  bool stream_ended_ = false;
  bool reset_ = false;  // the stream ended by a reset
  bool ended_ = false;  // the stream has ended and the server was informed
};

}  // namespace longhaul::smb::smb1
