// SPDX-License-Identifier: Apache-2.0
// Whether the near half may still use what it learnt from the far half: not after a silence. After a long one
// the far half returns oplocks without promises (far_order.h, far_opens.h), and during a short one its
// reports of others' changes do not arrive. Pure; near.h acts on it.
#pragma once
#include "proxy/modules/smb/half.h"

namespace longhaul::smb::smb2 {

class ContactWatch {
 public:
  enum class Finding : std::uint8_t {
    nothing_new,
    doubts,  // changes by others may have been missed: cached data of their files is void
    stops,   // the far half may return its oplocks: they are no longer used for responses
  };
  // `before`: the surroundings at the previous look. A silence counts whether or not an oplock was used
  // during it, even if it has ended when it is detected.
  Finding look(TimePoint now, const link::Contact& contact, const Surroundings& before);

  // Whether a long silence lasts.
  bool is_apart() const { return apart_; }
  // Whether no silence lasts.
  bool is_in_contact() const { return !apart_ && !unheard_; }

 private:
  bool apart_ = false, unheard_ = false;
};

}  // namespace longhaul::smb::smb2
