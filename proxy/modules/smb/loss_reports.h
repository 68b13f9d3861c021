// SPDX-License-Identifier: Apache-2.0
// Lost writes of SMB for the daemon: promises/loss_reports.h with SMB's names and guard.
#pragma once
#include <memory>
#include <utility>

#include "proxy/modules/promises/loss_reports.h"
#include "proxy/modules/smb/guard.h"
#include "proxy/modules/smb/lost_names.h"

namespace longhaul::smb {

inline std::unique_ptr<modules::Guard> make_guard(const modules::Ends& ends,
                                                  std::shared_ptr<LostWrites> lost) {
  return std::make_unique<Guard>(ends, std::move(lost));
}

inline LossReports loss_reports(
    std::shared_ptr<LostWrites> lost, LossReports::WallSeconds wall = [] { return std::int64_t{0}; }) {
  return LossReports(std::move(lost), display_name, make_guard, std::move(wall));
}

}  // namespace longhaul::smb
