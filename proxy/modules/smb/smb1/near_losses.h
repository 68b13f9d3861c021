// SPDX-License-Identifier: Apache-2.0
// The near half's reports of lost writes, of this flow or of earlier ones, to a client that opens such a file
// again (like far_losses.h): which requests must be answered with the error for lost writes, and when the
// client has received it. near_writes.h reports losses through files that are still open.
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

  // An open may be sent to the server: the far half may need the number of this daemon.
  void say_who();
  // Returns true if the request uses a file that has lost writes, and is answered with LOST_WRITEBEHIND_DATA
  // now.
  bool goes_on_with_lost(const Message& message);
  // The same if no response is possible: the flow must be reset now.
  bool is_told_by_reset(const Message& message);
  // The same if a request can no longer be parsed.
  bool is_told_unread() { return lost_->told_by_reset(ends_); }
  // From now on the client is not parsed, so it is not informed of its losses on other flows.
  void begin_unguarded() { unguarded_.begin(); }
  // Whether promises to this client are lost, or may be soon, here or on other flows.
  bool any() const { return lost_->any(ends_); }
  bool has_records() const { return lost_->has_records(ends_); }

  // A response of the far half, or of the server, to this request is passed on.
  void passes(const Message& answer);
  // How many responses were sent that report a loss, and how many have arrived at the client's host.
  std::uint64_t awaited() const { return telling_.awaited(); }
  void arrived(std::uint64_t outputs) { telling_.arrived(outputs); }
  // The client sends more, or has ended in order: it has received what has arrived.
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
