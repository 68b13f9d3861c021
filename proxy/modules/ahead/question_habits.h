// SPDX-License-Identifier: Apache-2.0
// What a client is likely to ask about the next file that it opens, learnt from what it asked about earlier
// ones. What a question is, and asking it, is left to the
// halves.
#pragma once
#include <string>
#include <vector>

namespace longhaul::ahead {

// Kinds of opens differ in what is asked about them: directories, data, files that are made or emptied,
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
    int score = 0;  // likely while above zero
  };
  std::vector<Habit> habits_[kKinds];
};

}  // namespace longhaul::ahead
