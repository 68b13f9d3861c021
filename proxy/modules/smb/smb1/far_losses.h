// SPDX-License-Identifier: Apache-2.0
// The far half's records in case the near proxy fails, and its report to a client that opens such a file
// again (like smb2/far_losses.h).
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "proxy/config/features.h"
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/promises/telling.h"
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/lost_files.h"

namespace longhaul::smb::smb1 {

class FarLosses {
 public:
  FarLosses(Connection& connection, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
      : connection_(connection), lost_(std::move(lost)), ends_(ends), files_(*lost_, ends) {}

  void remembers(const Remembers& told) { near_ = told.near; }
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
  // True: the open must be answered with LOST_WRITEBEHIND_DATA.
  bool goes_on_with_lost(const Opening& opening);

  void client_ended() { telling_.client_goes_on(); }
  // `ended`: the near half has sent all its messages. `owed`: opens with promises that the server has not
  // answered.
  enum class Stream : bool { open, ended };
  void lose_doubtful(Cause cause, Stream stream, const std::vector<OpenKey>& owed);

 private:
  LostWrites::File file_of(const Open& open) const { return files_.of(open); }

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
  std::uint64_t near_ = 0;           // the near daemon's number
  bool may_promise_ = false;         // the near half: it was allowed to at some time
  bool may_promise_cached_ = false;  // the same to clients that cache by themselves
  std::deque<Failed> failed_;
};

}  // namespace longhaul::smb::smb1
