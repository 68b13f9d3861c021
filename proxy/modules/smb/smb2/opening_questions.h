// SPDX-License-Identifier: Apache-2.0
// The queries that are sent with a CREATE (ahead/opening_questions.h), of SMB2; near_metadata.h has what
// became of them.
#pragma once
#include "proxy/modules/ahead/opening_questions.h"
#include "proxy/modules/smb/smb2/question.h"
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2 {

class OpeningQuestions : public ahead::OpeningQuestions {
 public:
  OpeningQuestions();  // begins with queries that programs send for most files

  // The client sends this CREATE: the queries to be sent with it, as question_of() has them. `file_systems`:
  // queries about the volume may be among them.
  enum class FileSystems : bool { excluded, included };
  std::span<const std::string> opening(MessageId create, const CreateRequest& request,
                                       FileSystems file_systems);
  // The same of a CREATE with which these were sent already.
  void opening_with(MessageId create, const CreateRequest& request, const std::vector<Slice>& questions);
};

}  // namespace longhaul::smb::smb2
