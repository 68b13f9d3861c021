// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/attribute_life.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {
namespace {

// Without an oplock a response is a snapshot: valid for as long as it would have been in transit.
constexpr modules::Duration kLeastSnapshotLife = std::chrono::milliseconds(100);

}  // namespace

bool attributes_guarded(const Open& open, const Features& features) {
  if (open.directory) return false;
  return open.watched || (open.caching & lease_state::write && !open.on_behalf && is_guarded(open, features));
}

bool may_be_used(AnswerAbout about, const Open& open, modules::Duration age,
                 const Surroundings& surroundings) {
  if (open.break_pending) return false;
  const bool of_file = about == AnswerAbout::file;
  const Features& features = surroundings.features;
  if (!features.metadata_relaxed) return of_file && attributes_guarded(open, features);
  if (of_file && (open.caching & lease_state::write) && !open.on_behalf) return true;
  if (of_file && (open.caching & lease_state::read)) return age <= kSharedLife;
  return age <= std::max(kLeastSnapshotLife, 2 * surroundings.round_trip);
}

}  // namespace longhaul::smb::smb2
