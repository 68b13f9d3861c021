// SPDX-License-Identifier: Apache-2.0
// Predicts which queries a client will send for the next file that it opens, from its queries for earlier
// ones. The halves interpret and send queries.
#pragma once
#include <string>
#include <vector>

namespace longhaul::ahead {

// Opens of different kinds have different queries: directories, data, files that are created or truncated,
// attributes.
class QuestionHabits {
 public:
  enum class Kind : std::uint8_t { directory, data, emptied, attributes };
  static constexpr std::size_t kKinds = 4;

  std::vector<std::string> likely(Kind kind) const;
  void asked(Kind kind, const std::string& question);
  void in_vain(Kind kind, const std::string& question);

 private:
  static constexpr std::size_t kMostKnown = 16, kMostLikely = 4;
  static constexpr int kMostScore = 4;
  struct Habit {
    std::string question;
    int score = 0;  // positive: likely
  };
  std::vector<Habit> habits_[kKinds];
};

}  // namespace longhaul::ahead
