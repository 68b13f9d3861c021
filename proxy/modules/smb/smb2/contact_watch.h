// SPDX-License-Identifier: Apache-2.0
// Whether what the near half learnt from the far half may still be used for answers: not after a silence. The
// far half gives back oplocks without promises after a long one (far_order.h, far_opens.h), and its reports
// of others' changes do not arrive in a short one. Pure; near.h acts on it.
#pragma once
#include "proxy/modules/smb/half.h"

namespace longhaul::smb::smb2 {

class ContactWatch {
 public:
  enum class Finding : std::uint8_t {
    nothing_new,
    doubts,  // changes by others may have gone unnoticed: what is known of their files is void
    stops,   // oplocks held by the far half may be given back: nothing is answered by them from here on
  };
  // `before`: the surroundings when it was looked at last. A silence counts whether an oplock was used in it
  // or not, even if it is over when it is found.
  Finding look(TimePoint now, const link::Contact& contact, const Surroundings& before);

  // A long silence lasts.
  bool is_apart() const { return apart_; }
  // No silence lasts.
  bool is_in_contact() const { return !apart_ && !unheard_; }

 private:
  bool apart_ = false, unheard_ = false;
};

}  // namespace longhaul::smb::smb2
