// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/question_habits.h"

#include <algorithm>

namespace longhaul::ahead {

std::vector<std::string> QuestionHabits::likely(Kind kind) const {
  std::vector<std::string> questions;
  for (const Habit& habit : habits_[static_cast<std::size_t>(kind)]) {
    if (habit.score > 0 && questions.size() < kMostLikely) questions.push_back(habit.question);
  }
  return questions;
}

void QuestionHabits::asked(Kind kind, const std::string& question) {
  auto& habits = habits_[static_cast<std::size_t>(kind)];
  const auto found = std::find_if(habits.begin(), habits.end(),
                                  [&](const Habit& habit) { return habit.question == question; });
  if (found != habits.end()) {
    found->score = std::min(found->score + 1, kMostScore);
    return;
  }
  if (habits.size() == kMostKnown) {
    habits.erase(std::min_element(habits.begin(), habits.end(),
                                  [](const Habit& a, const Habit& b) { return a.score < b.score; }));
  }
  habits.push_back({.question = question, .score = 1});
}

void QuestionHabits::in_vain(Kind kind, const std::string& question) {
  for (Habit& habit : habits_[static_cast<std::size_t>(kind)]) {
    if (habit.question == question) --habit.score;
  }
}

}  // namespace longhaul::ahead
