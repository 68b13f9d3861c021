// SPDX-License-Identifier: Apache-2.0
// The far half's part for losses when the near proxy fails: records each file with possible promised writes
// that never arrived, and informs the client when it opens the file again through another near proxy. A near
// proxy that still runs has better information (near_losses.h).
#pragma once
#include <memory>

#include "proxy/modules/promises/doubts.h"
#include "proxy/modules/smb/smb2/client_habits.h"
#include "proxy/modules/smb/smb2/lost_files.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarLosses final : public FarPart {
 public:
  FarLosses(FarSide& side, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
      : side_(side),
        lost_(std::move(lost)),
        files_(*lost_, ends, [this]() -> Connection& { return side_.connection(); }),
        doubts_(lost_, ends) {}
  // Nothing remains that could learn what the near half has promised: this daemon may be stopping.
  ~FarLosses() override { lose_doubtful(Cause::flow_cut); }
  FarLosses(const FarLosses&) = delete;
  FarLosses& operator=(const FarLosses&) = delete;
  void set_wake(const std::function<void()>& wake) { doubts_.on_news(wake); }

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  // Answers messages that would continue with a file with lost writes (as near_losses.h does).
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_surroundings(TimePoint, const Surroundings& surroundings) override {
    tell_marked();
    doubts_.allowed(
        {.early = surroundings.features.write_behind, .cached = surroundings.features.write_behind_cached});
  }
  // All promises precede the end.
  void stream_ended(TimePoint) override { ended_ = true; }
  // To be called before a request that may open any file. Returns true if the flow must be aborted to report
  // a loss.
  bool is_told_unread() { return doubts_.tells_all_by_reset(); }
  // The server's bytes pass without being parsed: no response or report is possible any more.
  void server_opaque() { is_mute_ = true; }
  void client_ended() { doubts_.client_ended(); }
  // Messages of the near half that have not arrived never will.
  void twin_lost() { lose_doubtful(Cause::near_vanished); }
  // The near half will be informed, and knows what is lost; but it may fail before it has informed its
  // client.
  void server_ended() { lose_doubtful(Cause::server_gone); }

 private:
  void lose_doubtful(Cause cause);
  // Whether the near half may promise WRITEs of the open, unless it has reported that it no longer does.
  bool may_promise(const Open& open) const;
  bool may_have_promised(const Open& open) const;
  void tell_marked();
  LostWrites::File file_of(const Open& open) const { return files_.of(open); }

  FarSide& side_;
  std::shared_ptr<LostWrites> lost_;  // files_ refers to it
  LostFiles files_;
  Doubts doubts_;
  KeyedMap<MessageId, OpenKey> promised_;  // not answered by the server
  bool ended_ = false, is_mute_ = false;
  ClientHabits habits_;
  PromisePolicy policy_;
};

}  // namespace longhaul::smb::smb2
