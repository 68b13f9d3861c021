// SPDX-License-Identifier: Apache-2.0
// Which queries are sent with a request that opens a file, because clients probably ask them next: by kind of
// open, as far as they did before. Knows opens without an answer. The protocol knows what a query is, of
// which kind an open is, and what has become of the queries.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/ahead/question_habits.h"
#include "proxy/modules/twin/open_key.h"

namespace longhaul::ahead {

class OpeningQuestions {
 public:
  using Kind = QuestionHabits::Kind;
  struct Opening {
    Kind kind = Kind::data;
    std::vector<std::string> questions;
  };

  // `habits`: those to begin with.
  explicit OpeningQuestions(QuestionHabits habits) : habits_(std::move(habits)) {}

  // The client sends a request that opens a file: the queries to be sent with it, of those that `is_allowed`.
  template <class Test>
  std::span<const std::string> opening(twin::MessageNumber request, Kind kind, Test is_allowed) {
    if (opening_.size() >= kMostOpening) return {};
    Opening opening{.kind = kind, .questions = habits_.likely(kind)};
    std::erase_if(opening.questions, [&](const std::string& question) { return !is_allowed(question); });
    return opening_.insert_or_assign(request, std::move(opening)).first->second.questions;
  }
  // The same of one with which these were sent already.
  void opening_with(twin::MessageNumber request, Opening opening) {
    opening_.insert_or_assign(request, std::move(opening));
  }
  // It was answered, successfully or not.
  std::optional<Opening> opened(twin::MessageNumber request) {
    auto found = opening_.extract(request);
    return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
  }
  void answered(twin::MessageNumber request) { opening_.erase(request); }

  // The client asks this about a file of that kind, or has closed the file without asking.
  void asked(Kind kind, const std::string& question) { habits_.asked(kind, question); }
  void in_vain(Kind kind, const std::string& question) { habits_.in_vain(kind, question); }

  // With more opens under way nothing is asked.
  static constexpr std::size_t kMostOpening = 4096;

 private:
  QuestionHabits habits_;
  KeyedMap<twin::MessageNumber, Opening> opening_;
};

}  // namespace longhaul::ahead
