// SPDX-License-Identifier: Apache-2.0
#include "proxy/loss_log.h"

#include "proxy/flows/ends.h"
#include "proxy/log/log.h"

namespace longhaul {
namespace {

// "0-4096,8192-12288": each from the first byte to the byte after the last.
std::string ranges_text(const std::vector<Interval>& ranges) {
  std::string text;
  for (const Interval& range : ranges)
    text += (text.empty() ? "" : ",") + std::to_string(range.begin) + '-' + std::to_string(range.end);
  return text.empty() ? "unknown" : text;
}

}  // namespace

void LossLog::lost(const Lost& lost) {
  const std::string client = flows::address_text(lost.file.ends.client);
  if (const auto left_out = lost_.may_write(client, std::chrono::steady_clock::now()))
    log::error("promise_lost", {{"file", lost.file.name},
                                {"client", client},
                                {"server", flows::address_text(lost.file.ends.server)},
                                {"ranges", ranges_text(lost.file.ranges)},
                                {"cause", lost.file.cause},
                                {"status", lost.status},
                                {"certain", lost.is_certain},
                                {"not_logged", *left_out}});
}

void LossLog::reported(const modules::ToldFile& told) {
  const std::string client = flows::address_text(told.file.ends.client);
  if (const auto left_out = reported_.may_write(client, std::chrono::steady_clock::now()))
    log::warn("promise_reported", {{"file", told.file.name},
                                   {"client", client},
                                   {"server", flows::address_text(told.file.ends.server)},
                                   {"ranges", ranges_text(told.file.ranges)},
                                   {"cause", told.file.cause},
                                   {"how", told.how},
                                   {"not_logged", *left_out}});
}

void LossLog::ended(const modules::LostFile& file, std::string_view why) {
  const std::string client = flows::address_text(file.ends.client);
  if (const auto left_out = ended_.may_write(client, std::chrono::steady_clock::now()))
    log::info("promise_ended", {{"file", file.name},
                                {"client", client},
                                {"server", flows::address_text(file.ends.server)},
                                {"why", why},
                                {"not_logged", *left_out}});
}

void LossLog::forgotten(const modules::LostFile& file) {
  const std::string client = flows::address_text(file.ends.client);
  if (const auto left_out = forgotten_.may_write(client, std::chrono::steady_clock::now()))
    log::error("promise_forgotten",
               {{"file", file.name},
                {"client", client},
                {"server", flows::address_text(file.ends.server)},
                {"reason", "too many files have lost writes: this loss is never reported to the client"},
                {"not_logged", *left_out}});
}

}  // namespace longhaul
