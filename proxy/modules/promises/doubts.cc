// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/doubts.h"

#include <utility>

namespace longhaul::promises {

Doubts::Doubts(std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
    : lost_(std::move(lost)), ends_(ends), telling_(*lost_), marks_(lost_) {
  lost_->live().enter_names(ends_, this);
}

Doubts::~Doubts() { lost_->live().leave_names(ends_, this); }

void Doubts::allowed(Allowed now) {
  allowed_.early |= now.early;
  allowed_.cached |= now.cached;
}

void Doubts::closed_failed(const OpenKey& open, LostWrites::File file) {
  failed_.push_back({open, std::move(file)});
  if (failed_.size() <= kMostFailed) return;
  marks_.unmark(failed_.front().open);
  failed_.pop_front();
}

void Doubts::settled(const OpenKey& open) {
  marks_.unmark(open);
  std::erase_if(failed_, [&](const Failed& each) { return each.open == open; });
}

void Doubts::moved(const LostWrites::File& from, const LostWrites::File& to) {
  for (Failed& each : failed_)
    if (auto name = name_after(each.file, from, to)) each.file = std::move(*name);
}

void Doubts::drop_what_near_knows(const LostWrites::File& file) {
  lost_->known_to(near_.near, file);
  lost_->known_to(near_.before, file);
}

bool Doubts::tells(const LostWrites::File& file, LostWrites::Use use, twin::MessageNumber answer) {
  drop_what_near_knows(file);
  return telling_.tells(file, use, answer);
}

bool Doubts::tells_by_reset(const LostWrites::File& file, LostWrites::Use use) {
  drop_what_near_knows(file);
  return telling_.tells_by_reset(file, use);
}

bool Doubts::tells_all_by_reset() {
  for (const std::uint64_t near : {near_.near, near_.before}) lost_->known_to(near, ends_);
  return lost_->told_by_reset(ends_);
}

void Doubts::lose(Cause cause, std::span<const LostWrites::File> files) {
  if (!allowed_.early) return;
  // The client of one flow never gets more reports.
  std::size_t left = LostRecords::kMost;
  const auto add = [&](const LostWrites::File& file) {
    if (left == 0 || (cause == Cause::flow_cut && lost_->has_record(file))) return;
    --left;
    lost_->add(file, {.cause = cause, .near = near_.near});
  };
  for (const Failed& each : failed_) add(each.file);
  for (const LostWrites::File& file : files) add(file);
}

}  // namespace longhaul::promises
