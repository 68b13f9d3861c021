// SPDX-License-Identifier: Apache-2.0
// The far half's records in case the near proxy fails, and its report to a client that opens such a file
// again (like smb2/far_losses.h).
#pragma once
#include <memory>
#include <vector>

#include "proxy/config/features.h"
#include "proxy/modules/promises/doubts.h"
#include "proxy/modules/smb/promise_policy.h"
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/lost_files.h"

namespace longhaul::smb::smb1 {

class FarLosses {
 public:
  FarLosses(Connection& connection, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
      : connection_(connection), lost_(std::move(lost)), files_(*lost_, ends, connection), doubts_(lost_, ends) {}
  void set_wake(const std::function<void()>& wake) { doubts_.on_news(wake); }

  void remembers(const Remembers& near) { doubts_.near_is(near); }
  void settled(const Settled& told);
  void may_promise(const Features& features) {
    features_ = features;
    doubts_.allowed({.early = features.write_behind, .cached = features.write_behind_cached});
  }

  void request(const Message& message);  // every request, before it is processed
  void reply(const Message& message) { files_.on_reply(message); }
  void refused(const OpenKey& key);  // a promised WRITE
  void opened(const Open& open, LostWrites::Use use) { files_.opened(open, use); }
  void closed(const Open& open);
  // The open is a new one: failures of earlier opens with the same FID no longer matter.
  void unmark_earlier(const Open& open) { doubts_.unmark(open.key); }
  // WRITEs of the open may be promised, if promises are allowed at all: it is marked. Reported by
  // poll_marks().
  void mark(const Open& open);
  std::vector<Marked> poll_marks();
  // Returns true if the request must be answered with LOST_WRITEBEHIND_DATA.
  bool goes_on_with_lost(const Message& message);
  // `is_mute`: no response is possible any more. Returns true if the request must be answered in the same way
  // but cannot be: the flow must be aborted.
  bool is_told_by_reset(const Message& message, bool is_mute);
  // The same for a request that may open any file.
  bool is_told_unread() { return doubts_.tells_all_by_reset(); }
  void loss_read(const LossRead& read) { doubts_.loss_read(read); }

  void client_ended() { doubts_.client_ended(); }
  // `ended`: the near half has sent all its messages. `owed`: opens with promises that the server has not
  // answered.
  enum class Stream : bool { open, ended };
  void lose_doubtful(Cause cause, Stream stream, const std::vector<OpenKey>& owed);

 private:
  LostWrites::File file_of(const Open& open) const { return files_.of(open); }
  bool may_promise(const Open& open) const;
  bool may_have_promised(const Open& open) const;

  Connection& connection_;
  std::shared_ptr<LostWrites> lost_;  // files_ refers to it
  LostFiles files_;
  Doubts doubts_;
  Features features_;
  PromisePolicy policy_;
};

}  // namespace longhaul::smb::smb1
