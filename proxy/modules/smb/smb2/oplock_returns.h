// SPDX-License-Identifier: Apache-2.0
// Gives back oplocks that the far half held on the client's behalf ([MS-SMB2] section 2.2.23.1): when the
// server takes one back, after everything that was promised under it, or, where the near half is silent,
// before the server gives it to others.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "proxy/modules/smb/oplock_fences.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class OplockReturns {
 public:
  // `has_promises`: through this open something is promised that the server has not answered.
  OplockReturns(FarSide& side, std::function<bool(const OpenKey&)> has_promises)
      : side_(side), has_promises_(std::move(has_promises)) {}

  // True: the message is a break that the client must not see.
  bool takes_break(TimePoint now, const Message& message);
  // Broken has come: everything promised under it came before.
  void near_gives_back(const OpenKey& open);
  // Gives it back if nothing hinders that any more.
  void give_back(const OpenKey& open);
  void on_ids_freed();
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const;
  void stream_ended();

 private:
  struct GivingBack {
    OplockLevel level = OplockLevel::none;
    bool near_done = false;
    bool alone = false;  // it may be given back without the near half, some time; else it is fenced
  };
  void near_is_done(const OpenKey& open, GivingBack& giving);
  void give_back_all();

  FarSide& side_;
  std::function<bool(const OpenKey&)> has_promises_;
  std::map<OpenKey, GivingBack> giving_back_;
  std::size_t alone_ = 0;  // of these, those that the near half is not done with
  OplockFences fences_;    // of those that may not be given back alone
  std::set<OpenKey> back_unsent_;  // that had no id
  bool ended_ = false;             // the near half tells nothing more
};

}  // namespace longhaul::smb::smb2
