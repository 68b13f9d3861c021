// SPDX-License-Identifier: Apache-2.0
// The machine's clock, and kernel packet stamps (wall clock) moved onto it. The only place here that reads
// time.
#pragma once
#include <time.h>

#include "tools/wan/link.h"

namespace longhaul::wan {

TimePoint clock_now();

// The kernel stamps packets by the wall clock, which may be set while the line runs; the line lives on the
// steady clock. Only the difference between the two is used, measured again for every batch.
class WallClock {
 public:
  void refresh();
  TimePoint to_steady(std::uint32_t seconds, std::uint32_t nanos) const;

 private:
  Duration ahead_{0};  // wall clock minus steady clock
  TimePoint checked_{};
};

}  // namespace longhaul::wan
