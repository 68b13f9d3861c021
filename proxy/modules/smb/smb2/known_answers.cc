// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/known_answers.h"

#include <algorithm>
#include <iterator>

namespace longhaul::smb::smb2 {

KnownAnswer* KnownAnswers::find(const std::string& question) {
  const auto found = answers_.find(question);
  return found == answers_.end() ? nullptr : &found->second;
}

void KnownAnswers::expect(const std::string& question, std::uint64_t version) {
  answers_.emplace(question, KnownAnswer{.version = version});
}

bool KnownAnswers::wait(KnownAnswer& answer, const Message& query) {
  if (totals_.waiting >= kMostWaiting || query.frame.bytes.size() > kMostWaitingBytes) return false;
  answer.waiting.push_back(kept(query));
  ++totals_.waiting;
  return true;
}

std::optional<KnownAnswer> KnownAnswers::take_expected(const std::string& question) {
  const auto found = answers_.find(question);
  if (found == answers_.end() || found->second.here) return std::nullopt;
  std::optional taken(std::move(found->second));
  totals_.waiting -= taken->waiting.size();
  answers_.erase(found);
  return taken;
}

void KnownAnswers::keep(const std::string& question, KnownAnswer answer) {
  forget(question);
  const std::size_t bytes = answer.response.size();
  if (answers_.size() >= kMostAnswers || bytes > kMostAnswerBytes || totals_.bytes + bytes > kMostHeldBytes)
    return;
  totals_.bytes += bytes;
  answers_.emplace(question, std::move(answer));
}

void KnownAnswers::forget(const std::string& question) {
  const auto found = answers_.find(question);
  if (found == answers_.end()) return;
  totals_.bytes -= found->second.response.size();
  totals_.waiting -= found->second.waiting.size();
  answers_.erase(found);
}

bool KnownAnswers::has_waiting() const {
  return std::any_of(answers_.begin(), answers_.end(),
                     [](const auto& each) { return !each.second.waiting.empty(); });
}

std::vector<Message> KnownAnswers::clear() {
  std::vector<Message> waiting;
  for (auto& [question, answer] : answers_) {
    std::move(answer.waiting.begin(), answer.waiting.end(), std::back_inserter(waiting));
    totals_.bytes -= answer.response.size();
  }
  totals_.waiting -= waiting.size();
  answers_.clear();
  return waiting;
}

}  // namespace longhaul::smb::smb2
