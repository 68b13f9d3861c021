// SPDX-License-Identifier: Apache-2.0
// The near half's reports of lost writes, of this flow or of earlier ones, to a client that opens such a file
// again (like far_losses.h): which requests must be answered with the error for that, and when the client has
// read it. near_writes.h reports what is lost through files that are still open.
#pragma once
#include <memory>

#include "proxy/modules/promises/telling.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/lost_files.h"

namespace longhaul::smb::smb1 {

class NearLosses {
 public:
  // `lost`: of all flows of this site; `ends`: of this one. The references outlive this object.
  NearLosses(Outputs& out, const LostFiles& files, std::shared_ptr<LostWrites> lost,
             const LostWrites::Ends& ends)
      : out_(out),
        files_(files),
        lost_(std::move(lost)),
        ends_(ends),
        telling_(*lost_),
        unguarded_(lost_, ends) {}

  // An open that may go to the server: the far half may have to know what this daemon remembers.
  void say_who();
  // True: it uses a file that has lost writes, and is answered with LOST_WRITEBEHIND_DATA now.
  bool goes_on_with_lost(const Message& message);
  // The same where nothing may be answered: the flow must be reset now.
  bool is_told_by_reset(const Message& message);
  // The same where a request can no longer be read.
  bool is_told_unread() { return lost_->told_by_reset(ends_); }
  // From here on the client is not read: it is not told what is lost of its promises elsewhere.
  void begin_unguarded() { unguarded_.begin(); }
  // Something is lost, or may be soon, of this client's promises here or elsewhere.
  bool any() const { return lost_->any(ends_); }
  bool has_records() const { return lost_->has_records(ends_); }

  // An answer to this request is passed on that the far half, or the server, has sent.
  void passes(const Message& answer);
  // How many answers were sent that report a loss, and how many have arrived at the client's host.
  std::uint64_t awaited() const { return telling_.awaited(); }
  void arrived(std::uint64_t outputs) { telling_.arrived(outputs); }
  // It sends something more, or has ended in order: it has read what has arrived.
  void client_goes_on();

 private:
  Outputs& out_;
  const LostFiles& files_;
  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  Telling telling_;
  Unguarded unguarded_;
  bool has_said_who_ = false;
};

}  // namespace longhaul::smb::smb1
