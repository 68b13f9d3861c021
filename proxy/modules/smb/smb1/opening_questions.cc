// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/opening_questions.h"

#include "proxy/modules/smb/smb1/questions.h"

namespace longhaul::smb::smb1 {
namespace {

QuestionHabits::Kind kind_of(const Message& message) {
  const auto create = parse_nt_create_request(message.first(), message.header);
  if (message.header.command != Command::nt_create_andx || !create) return QuestionHabits::Kind::data;
  if (create->options & kOptionDirectory) return QuestionHabits::Kind::directory;
  if (only_looks(*create)) return QuestionHabits::Kind::attributes;
  const auto disposition = static_cast<Disposition>(create->disposition);
  const bool keeps = disposition == Disposition::open || disposition == Disposition::open_if;
  return keeps ? QuestionHabits::Kind::data : QuestionHabits::Kind::emptied;
}

// Linux's client identifies a file that it has created by the server's number ([MS-FSCC] 2.4.22), and queries
// that by path.
std::string usual_question() {
  constexpr std::uint16_t kFscInternal = 1006, kMostParameters = 2, kMostData = 4000;
  Buffer question;
  for (const std::uint16_t field :
       {static_cast<std::uint16_t>(Trans2::query_path_information), kFscInternal, kMostParameters, kMostData})
    append_field(question, field);
  return std::string(as_text(question));
}

}  // namespace

OpeningQuestions::OpeningQuestions() : ahead::OpeningQuestions(QuestionHabits()) {
  asked(Kind::emptied, usual_question());
}

std::span<const std::string> OpeningQuestions::opening(const Message& request, Ask what) {
  return ahead::OpeningQuestions::opening(
      number_of(request.header), kind_of(request), [what](const std::string& question) {
        return what == Ask::also_about_volumes ||
               (what == Ask::about_files && function_of(question) != Trans2::query_fs_information);
      });
}

}  // namespace longhaul::smb::smb1
