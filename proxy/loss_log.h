// SPDX-License-Identifier: Apache-2.0
// A log line for each module promise that was not kept, and for each report of one to its client.
#pragma once
#include "proxy/modules/losses.h"

namespace longhaul {

class LossLog final : public modules::LossLog {
 public:
  void lost(const Lost& lost) override;
  void reported(const modules::LostFile& file, std::string_view how) override;
  void forgotten(const modules::LostFile& file) override;
};

}  // namespace longhaul
