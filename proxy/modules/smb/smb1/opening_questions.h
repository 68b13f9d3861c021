// SPDX-License-Identifier: Apache-2.0
// Which queries are sent with a request that opens a file, because clients probably ask them next: by kind of
// open, as far as they did before. Knows opens without an answer; near_questions.h has what became of the
// queries.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/ahead/question_habits.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

class OpeningQuestions {
 public:
  using Kind = QuestionHabits::Kind;
  struct Opening {
    Kind kind = Kind::data;
    std::vector<std::string> questions;  // as question_of() has them
  };

  OpeningQuestions();  // begins with one that Linux's client sends for each new file

  // The client sends this open: the queries to be sent with it.
  enum class Ask : std::uint8_t { nothing, about_files, also_about_volumes };
  std::span<const std::string> opening(const Message& request, Ask what);
  // It was answered, successfully or not.
  std::optional<Opening> opened(MessageNumber request);

  // The client asks this about a file of that kind, or has closed the file without asking.
  void asked(Kind kind, const std::string& question) { habits_.asked(kind, question); }
  void in_vain(Kind kind, const std::string& question) { habits_.in_vain(kind, question); }

  // With more opens under way nothing is asked.
  static constexpr std::size_t kMostOpening = 4096;

 private:
  QuestionHabits habits_;
  KeyedMap<MessageNumber, Opening> opening_;
};

}  // namespace longhaul::smb::smb1
