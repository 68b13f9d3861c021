// SPDX-License-Identifier: Apache-2.0
// A log line for each promise of a module that was not kept, and for each report of one to its client; of
// more in a minute than files are remembered the first ones, and how many more there were. Counters have all.
#pragma once
#include "proxy/log/line_limit.h"
#include "proxy/modules/losses.h"

namespace longhaul {

class LossLog final : public modules::LossLog {
 public:
  void lost(const Lost& lost) override;
  void reported(const modules::ToldFile& told) override;
  void forgotten(const modules::LostFile& file) override;

 private:
  // Of one client in a minute: as many as one failure can leave behind.
  static constexpr unsigned kLines = modules::kMostLostFiles;
  log::LineLimit lost_{kLines}, reported_{kLines}, forgotten_{kLines};
};

}  // namespace longhaul
