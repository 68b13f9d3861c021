// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/loss_reports.h"

#include <cstdio>
#include <utility>

#include "proxy/modules/promises/lost_book.h"

namespace longhaul::promises {
namespace {

std::string_view name_of(Cause cause) { return kCauseNames[static_cast<std::size_t>(cause)]; }

std::string hexadecimal(std::uint32_t status) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", static_cast<unsigned>(status));
  return text;
}

}  // namespace

LossReports::LossReports(std::shared_ptr<LostWrites> lost, Name name_of, Guarded guard, WallSeconds wall)
    : lost_(std::move(lost)), name_of_(name_of), guard_(guard), wall_(std::move(wall)) {
  lost_->events().set_journal(this);
}

LossReports::~LossReports() { lost_->events().set_journal(nullptr); }

modules::Losses::Counts LossReports::counts() const {
  const LostWrites::Counters& counters = lost_->events().counters();
  Counts counts{.lost = {},
                .suspected = {},
                .reported = {},
                .forgotten = counters.evicted,
                .waiting = lost_->waiting()};
  for (std::size_t i = 0; i < counters.lost.size(); ++i) {
    counts.lost.emplace_back(kCauseNames[i], counters.lost[i]);
    counts.suspected.emplace_back(kCauseNames[i], counters.suspected[i]);
  }
  for (std::size_t i = 0; i < counters.reported.size(); ++i)
    counts.reported.emplace_back(kToldNames[i], counters.reported[i]);
  return counts;
}

std::vector<modules::LostFile> LossReports::files(const modules::Ends& ends, std::size_t most) const {
  std::vector<modules::LostFile> files;
  if (!lost_->any(ends)) return files;
  for (const LostWrites::Record& record : lost_->records()) {
    if (any_port(record.file.ends) != any_port(ends)) continue;
    if (files.size() == most) break;
    files.push_back(shown(record.file, record.loss));
  }
  return files;
}

std::vector<modules::ToldFile> LossReports::told(const modules::Ends& ends, std::size_t most) const {
  std::vector<modules::ToldFile> found;
  for (const modules::ToldFile& told : told_) {
    if (found.size() == most) break;
    if (any_port(told.file.ends) == any_port(ends)) found.push_back(told);
  }
  return found;
}

std::unique_ptr<modules::Guard> LossReports::make_guard(const modules::Ends& ends) {
  if (!lost_->may_lose(ends)) return nullptr;
  return guard_(ends, lost_);
}

std::shared_ptr<void> LossReports::unguarded(const modules::Ends& ends) {
  lost_->live().enter_unguarded(ends);
  return {nullptr, [lost = lost_, ends](void*) { lost->live().leave_unguarded(ends); }};
}

modules::LostFile LossReports::shown(const LostWrites::File& file) const {
  return {.name = name_of_(file), .ends = file.ends, .cause = {}, .ranges = {}};
}

modules::LostFile LossReports::shown(const LostWrites::File& file, const LostWrites::Loss& loss) const {
  return {.name = name_of_(file), .ends = file.ends, .cause = name_of(loss.cause), .ranges = loss.ranges};
}

// ---- the text

std::string LossReports::text() const { return lost_book_text(lost_->records()); }

bool LossReports::restore(std::string_view text) {
  auto records = parse_lost_book(text);
  if (!records) return false;
  lost_->restore(std::move(*records));
  return true;
}

void LossReports::changed() {
  if (on_change_) on_change_();
}

// ---- the log

void LossReports::lost(const LostWrites::File& file, const LostWrites::Loss& loss) {
  if (log_)
    log_->lost(
        {.file = shown(file, loss), .status = hexadecimal(loss.status), .is_certain = !loss.is_suspected()});
}

void LossReports::reported(const LostWrites::File& file, const LostWrites::Loss& loss, Told how) {
  const std::chrono::system_clock::time_point now{std::chrono::seconds(wall_())};
  told_.push_front({.file = shown(file, loss), .how = kToldNames[static_cast<std::size_t>(how)], .at = now});
  told_name_bytes_ += told_.front().file.name.size();
  if (log_) log_->reported(told_.front());
  while (told_.size() > kMostTold || told_name_bytes_ > kMostToldNameBytes) {
    told_name_bytes_ -= told_.back().file.name.size();
    told_.pop_back();
  }
}

void LossReports::ended(const LostWrites::File& file, const LostWrites::Loss& loss, Ended why) {
  if (log_) log_->ended(shown(file, loss), kEndedNames[static_cast<std::size_t>(why)]);
}

void LossReports::evicted(const LostWrites::File& file) {
  if (log_) log_->forgotten(shown(file));
}

}  // namespace longhaul::promises
