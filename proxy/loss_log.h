// SPDX-License-Identifier: Apache-2.0
// Logs each promise of a module that was not kept, and each report of one to its client. If there are more in
// a minute than files are remembered, logs the first ones and the number of the others. Counters include all.
#pragma once
#include "proxy/log/line_limit.h"
#include "proxy/modules/losses.h"

namespace longhaul {

class LossLog final : public modules::LossLog {
 public:
  void lost(const Lost& lost) override;
  void reported(const modules::ToldFile& told) override;
  void ended(const modules::LostFile& file, std::string_view why) override;
  void forgotten(const modules::LostFile& file) override;

 private:
  // Per client and minute: as many as one failure can cause.
  static constexpr unsigned kLines = modules::kMostLostFiles;
  log::LineLimit lost_{kLines}, reported_{kLines}, ended_{kLines}, forgotten_{kLines};
};

}  // namespace longhaul
