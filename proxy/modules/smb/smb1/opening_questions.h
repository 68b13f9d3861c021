// SPDX-License-Identifier: Apache-2.0
// The queries that are sent with an open (ahead/opening_questions.h), of SMB1; near_questions.h has what
// became of them.
#pragma once
#include "proxy/modules/ahead/opening_questions.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

class OpeningQuestions : public ahead::OpeningQuestions {
 public:
  OpeningQuestions();  // begins with one that Linux's client sends for each new file

  // The client sends this open: the queries to be sent with it, as question_of() has them.
  enum class Ask : std::uint8_t { nothing, about_files, also_about_volumes };
  std::span<const std::string> opening(const Message& request, Ask what);
};

}  // namespace longhaul::smb::smb1
