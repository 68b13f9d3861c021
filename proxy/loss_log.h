// SPDX-License-Identifier: Apache-2.0
// A log line for each promise of a module that was not kept, and for each report of one to its client; of
// thousands of one client the first ones, and how many more there were. Counters and the file of losses have
// them all.
#pragma once
#include "proxy/log/line_limit.h"
#include "proxy/modules/losses.h"

namespace longhaul {

class LossLog final : public modules::LossLog {
 public:
  void lost(const Lost& lost) override;
  void reported(const modules::LostFile& file, std::string_view how) override;
  void forgotten(const modules::LostFile& file) override;

 private:
  static constexpr unsigned kLines = 50;  // of one client in a minute
  log::LineLimit lost_{kLines}, reported_{kLines}, forgotten_{kLines};
};

}  // namespace longhaul
