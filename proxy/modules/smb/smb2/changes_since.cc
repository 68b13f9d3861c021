// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/changes_since.h"

namespace longhaul::smb::smb2 {

ChangesSince::ChangesSince(const Open& open)
    : changes_(open.group->count(&FileCounts::changes)),
      doubts_(open.group->count(&FileCounts::doubts)),
      writes_(open.group->count(&FileCounts::writes)),
      others_(changes_ - writes_) {}

bool ChangesSince::any(const Open& open) const {
  return open.group->count(&FileCounts::changes) != changes_ ||
         open.group->count(&FileCounts::doubts) != doubts_;
}

bool ChangesSince::may_be_unfinished(const Open& open) const {
  return open.group->count(&FileCounts::writes) != writes_ || other_than_writes(open);
}

bool ChangesSince::other_than_writes(const Open& open) const {
  return open.group->count(&FileCounts::changes) - open.group->count(&FileCounts::writes) != others_;
}

}  // namespace longhaul::smb::smb2
