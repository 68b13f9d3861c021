// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/contact_watch.h"

#include <utility>

namespace longhaul::smb::smb2 {

ContactWatch::Finding ContactWatch::look(TimePoint now, const link::Contact& contact,
                                         const Surroundings& before) {
  if (contact.since == TimePoint{}) return Finding::nothing_new;
  const bool lost_it = before.contact.since != TimePoint{} && contact.since != before.contact.since;
  const bool was_apart = std::exchange(apart_, now - contact.confirmed > link::kApart);
  const bool was_unheard = std::exchange(unheard_, is_unheard(now, contact, before));
  if (lost_it || (apart_ && !was_apart)) return Finding::stops;
  return unheard_ && !was_unheard ? Finding::doubts : Finding::nothing_new;
}

}  // namespace longhaul::smb::smb2
