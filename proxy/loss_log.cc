// SPDX-License-Identifier: Apache-2.0
#include "proxy/loss_log.h"

#include "proxy/flows/ends.h"
#include "proxy/log/log.h"

namespace longhaul {
namespace {

// "0-4096,8192-12288": each from the first byte to the one after the last.
std::string ranges_text(const std::vector<Interval>& ranges) {
  std::string text;
  for (const Interval& range : ranges)
    text += (text.empty() ? "" : ",") + std::to_string(range.begin) + '-' + std::to_string(range.end);
  return text.empty() ? "unknown" : text;
}

}  // namespace

void LossLog::lost(const Lost& lost) {
  log::error("promise_lost", {{"file", lost.file.name},
                              {"client", flows::address_text(lost.file.ends.client)},
                              {"server", flows::address_text(lost.file.ends.server)},
                              {"ranges", ranges_text(lost.file.ranges)},
                              {"cause", lost.file.cause},
                              {"status", lost.status},
                              {"certain", lost.is_certain}});
}

void LossLog::reported(const modules::LostFile& file, std::string_view how) {
  log::warn("promise_reported",
            {{"file", file.name}, {"client", flows::address_text(file.ends.client)}, {"how", how}});
}

void LossLog::forgotten(const modules::LostFile& file) {
  log::error("promise_forgotten",
             {{"file", file.name},
              {"client", flows::address_text(file.ends.client)},
              {"reason", "too many files have lost writes: this loss is never reported to the client"}});
}

}  // namespace longhaul
