// SPDX-License-Identifier: Apache-2.0
// Learns which queries a client is likely to send for the next file that it opens, from its queries for
// earlier ones. The halves know what a query is and send it.
#pragma once
#include <string>
#include <vector>

namespace longhaul::ahead {

// Different kinds of opens have different queries: directories, data, files that are created or emptied,
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
