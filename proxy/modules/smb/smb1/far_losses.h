// SPDX-License-Identifier: Apache-2.0
// The far half's records in case the near proxy fails, and its report to a client that opens such a file
// again (like smb2/far_losses.h).
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "proxy/config/features.h"
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/promises/marks.h"
#include "proxy/modules/promises/telling.h"
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/lost_files.h"

namespace longhaul::smb::smb1 {

class FarLosses {
 public:
  FarLosses(Connection& connection, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
      : connection_(connection), lost_(std::move(lost)), ends_(ends), files_(*lost_, ends), marks_(lost_) {}
  void set_wake(const std::function<void()>& wake) { marks_.on_news(wake); }

  void remembers(const Remembers& told) { who_ = told; }
  void settled(const Settled& told);
  void may_promise(const Features& features) {
    may_promise_ |= features.write_behind;
    may_promise_cached_ |= features.write_behind_cached;
  }

  void request(const Message& message);  // every one, before it is taken
  void reply(const Message& message) { files_.on_reply(message); }
  void refused(const OpenKey& key);  // a promised WRITE
  void opened(const Open& open, LostWrites::Use use) { files_.opened(open, use); }
  void closed(const Open& open);
  // It is a new one: what has failed through an earlier one of the same FID is over.
  void unmark_earlier(const Open& open) { marks_.unmark(open.key); }
  // WRITEs through it may be promised, if they may at all: it is marked. Told by poll_marked().
  void mark(const Open& open);
  std::vector<Marked> poll_marked();
  // True: the open must be answered with LOST_WRITEBEHIND_DATA.
  bool goes_on_with_lost(const Opening& opening);

  void client_ended() { telling_.client_goes_on(); }
  // `ended`: the near half has sent all its messages. `owed`: opens with promises that the server has not
  // answered.
  enum class Stream : bool { open, ended };
  void lose_doubtful(Cause cause, Stream stream, const std::vector<OpenKey>& owed);

 private:
  LostWrites::File file_of(const Open& open) const { return files_.of(open); }
  bool may_promise(const Open& open) const;

  // Closed with a promise failed: the near half may not have told the client yet.
  struct Failed {
    OpenKey open;
    LostWrites::File file;
  };
  static constexpr std::size_t kMostFailed = 64;

  Connection& connection_;
  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  Telling telling_{*lost_};
  LostFiles files_;
  OpenMarks marks_;
  Remembers who_;                    // the near daemon
  bool may_promise_ = false;         // the near half: it was allowed to at some time
  bool may_promise_cached_ = false;  // the same to clients that cache by themselves
  std::deque<Failed> failed_;
};

}  // namespace longhaul::smb::smb1
