// SPDX-License-Identifier: Apache-2.0
// The MessageIds that a client has used on a connection. Each is used once ([MS-SMB2] 3.2.4.1.3, 3.3.5.2.3),
// so a request with a used id is a replay, even if its signature is valid. Servers refuse it; it must be
// refused here too, because the far half gives requests other ids and signs them again.
#pragma once
#include "codecs/interval_set.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::seal {

class UsedIds {
 public:
  // Returns the error `forged` if an id was used before.
  Result<void> use(const smb2::Header& request);
  // While no session has keys. The server checks such requests.
  void note(const Frame& frame);

  std::size_t state_bytes() const { return ids_.intervals().size() * sizeof(Interval); }

  // Gaps are requests in flight that were reordered, and those in transforms that are not opened.
  static constexpr std::size_t kMostRuns = 4096;

 private:
  IntervalSet ids_;
};

}  // namespace longhaul::smb::seal
