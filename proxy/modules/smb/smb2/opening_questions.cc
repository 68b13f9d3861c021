// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/opening_questions.h"

namespace longhaul::smb::smb2 {
namespace {

ahead::QuestionHabits::Kind kind_of(const CreateRequest& request) {
  if (request.options & create_options::directory_file) return ahead::QuestionHabits::Kind::directory;
  constexpr std::uint32_t kData = access::read_data | access::write_data | access::append_data |
                                  access::execute | access::generic_all | access::generic_read |
                                  access::generic_write | access::generic_execute | access::maximum_allowed;
  return request.desired_access & kData ? ahead::QuestionHabits::Kind::data
                                        : ahead::QuestionHabits::Kind::attributes;
}

// Queries that programs send for most files; one open without one of these ends it. Only queries whose
// answers have one size, which question_of() treats as equal for any buffer size.
ahead::QuestionHabits usual_questions() {
  ahead::QuestionHabits habits;
  const auto usual = [&](ahead::QuestionHabits::Kind kind, InfoType type, std::uint8_t info_class) {
    QueryInfoRequest request;
    request.type = type;
    request.info_class = info_class;
    request.output_bytes = ~0u;
    if (const auto question = question_of(request))
      habits.asked(kind, std::string(as_text(question->bytes())));
  };
  using Kind = ahead::QuestionHabits::Kind;
  usual(Kind::data, InfoType::file, file_info::standard);
  usual(Kind::data, InfoType::file, file_info::basic);
  usual(Kind::data, InfoType::file, file_info::network_open);
  usual(Kind::data, InfoType::file_system, fs_info::full_size);
  usual(Kind::attributes, InfoType::file, file_info::network_open);
  usual(Kind::attributes, InfoType::file, file_info::basic);
  return habits;
}

bool is_of_file_system(const std::string& question) {
  const auto request = request_of(as_bytes(question));
  return !request || request->type == InfoType::file_system;
}

}  // namespace

OpeningQuestions::OpeningQuestions() : ahead::OpeningQuestions(usual_questions()) {}

std::span<const std::string> OpeningQuestions::opening(MessageId create, const CreateRequest& request,
                                                       FileSystems file_systems) {
  return ahead::OpeningQuestions::opening(
      number_of(create), kind_of(request), [file_systems](const std::string& question) {
        return file_systems == FileSystems::included || !is_of_file_system(question);
      });
}

void OpeningQuestions::opening_with(MessageId create, const CreateRequest& request,
                                    const std::vector<Slice>& questions) {
  Opening opening{.kind = kind_of(request), .questions = {}};
  for (const Slice& question : questions) opening.questions.emplace_back(as_text(question.bytes()));
  ahead::OpeningQuestions::opening_with(number_of(create), std::move(opening));
}

}  // namespace longhaul::smb::smb2
