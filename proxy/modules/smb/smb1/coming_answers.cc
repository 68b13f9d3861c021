// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/coming_answers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proxy/modules/smb/smb1/questions.h"

namespace longhaul::smb::smb1 {

void ComingAnswers::expect(const OpenKey& open, std::span<const std::string> questions) {
  if (questions.empty()) return;
  OfOpen& coming = opens_[open];
  for (const std::string& question : questions) coming.emplace(question, Coming{});
}

bool ComingAnswers::hold(const OpenKey& open, const std::string& question, const Header& header,
                         const Frame& frame) {
  const auto found = opens_.find(open);
  return found != opens_.end() && hold(found->second, question, header, frame);
}

bool ComingAnswers::hold_in_tree(const Header& header, const std::string& question, const Frame& frame) {
  return std::ranges::any_of(opens_, [&](auto& each) {
    return each.first.session == header.uid && each.first.tree == header.tid &&
           hold(each.second, question, header, frame);
  });
}

bool ComingAnswers::hold(OfOpen& open, const std::string& question, const Header& header,
                         const Frame& frame) {
  const auto coming = open.find(question);
  if (coming == open.end() || coming->second.is_void || held_ >= kMostHeld ||
      frame.bytes.size() > kMostHeldFrame)
    return false;
  coming->second.held.push_back({header, Slice::copy_of(frame.bytes.bytes())});
  ++held_;
  return true;
}

std::optional<ComingAnswers::Coming> ComingAnswers::take(const OpenKey& open, const std::string& question) {
  const auto found = opens_.find(open);
  if (found == opens_.end()) return std::nullopt;
  auto coming = found->second.extract(question);
  if (coming.empty()) return std::nullopt;
  if (found->second.empty()) opens_.erase(found);
  held_ -= coming.mapped().held.size();
  return std::move(coming.mapped());
}

void ComingAnswers::drop(const OpenKey& open) {
  if (const auto found = opens_.find(open); found != opens_.end())
    for (auto& [question, coming] : found->second) coming.is_void = true;
}

void ComingAnswers::drop_all() {
  for (auto& [open, answers] : opens_)
    for (auto& [question, coming] : answers) coming.is_void = true;
}

void ComingAnswers::drop_volumes() {
  for (auto& [open, answers] : opens_)
    for (auto& [question, coming] : answers)
      if (function_of(question) == Trans2::query_fs_information) coming.is_void = true;
}

std::vector<ComingAnswers::Held> ComingAnswers::forget(const OpenKey& open) {
  std::vector<Held> held;
  auto found = opens_.extract(open);
  if (found.empty()) return held;
  for (auto& [question, coming] : found.mapped()) std::ranges::move(coming.held, std::back_inserter(held));
  held_ -= held.size();
  return held;
}

}  // namespace longhaul::smb::smb1
