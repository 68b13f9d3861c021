// SPDX-License-Identifier: Apache-2.0
// What has changed in a file since one of its opens was answered, by the counts of its group (files.h):
// whether information of that time is still valid, and whether a change may be unfinished at the server.
#pragma once
#include "proxy/modules/smb/smb2/open.h"

namespace longhaul::smb::smb2 {

class ChangesSince {
 public:
  ChangesSince() = default;
  // `open` has just been answered.
  explicit ChangesSince(const Open& open);

  // Whether cached data or attributes have become void since then.
  bool any(const Open& open) const;
  // Whether there were WRITEs without a later answered FLUSH, or other changes.
  bool may_be_unfinished(const Open& open) const;
  // There were other changes than WRITEs.
  bool other_than_writes(const Open& open) const;
  // A FLUSH was answered before which those WRITEs were sent.
  void flushed(const ChangesSince& sent) { writes_ = sent.writes_; }

 private:
  std::uint64_t changes_ = 0, doubts_ = 0;
  std::uint64_t writes_ = 0, others_ = 0;  // of the changes
};

}  // namespace longhaul::smb::smb2
