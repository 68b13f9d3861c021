// SPDX-License-Identifier: Apache-2.0
// Which queries about a file are sent with its CREATE, because clients probably ask them next: by kind of
// open, as far as they did before. Knows CREATEs without an answer; near_metadata.h has what became of the
// queries.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/ahead/question_habits.h"
#include "proxy/modules/smb/smb2/question.h"
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2 {

class OpeningQuestions {
 public:
  using Kind = ahead::QuestionHabits::Kind;
  struct Opening {
    Kind kind = Kind::data;
    std::vector<std::string> questions;  // as question_of() has them
  };

  OpeningQuestions();  // begins with queries that programs send for most files

  // The client sends this CREATE: the queries to be sent with it. `file_systems`: queries about the volume
  // may be among them.
  enum class FileSystems : bool { excluded, included };
  std::span<const std::string> opening(MessageId create, const CreateRequest& request,
                                       FileSystems file_systems);
  // The same of a CREATE with which these were sent already.
  void opening_with(MessageId create, const CreateRequest& request, const std::vector<Slice>& questions);
  // The CREATE is answered, successfully or not.
  std::optional<Opening> opened(MessageId create);
  void answered(MessageId create) { opening_.erase(create); }

  // A client asks this about a file of that kind, or has closed the file without asking.
  void asked(Kind kind, const std::string& question) { habits_.asked(kind, question); }
  void in_vain(Kind kind, const std::string& question) { habits_.in_vain(kind, question); }

  // With more CREATEs under way nothing is asked.
  static constexpr std::size_t kMostOpening = 4096;

 private:
  ahead::QuestionHabits habits_;
  KeyedMap<MessageId, Opening> opening_;
};

}  // namespace longhaul::smb::smb2
