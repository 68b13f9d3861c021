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

OpeningQuestions::OpeningQuestions() : habits_(usual_questions()) {}

std::span<const std::string> OpeningQuestions::opening(MessageId create, const CreateRequest& request,
                                                       FileSystems file_systems) {
  if (opening_.size() >= kMostOpening) return {};
  Opening opening{.kind = kind_of(request), .questions = {}};
  opening.questions = habits_.likely(opening.kind);
  if (file_systems == FileSystems::excluded) std::erase_if(opening.questions, is_of_file_system);
  return opening_.insert_or_assign(create, std::move(opening)).first->second.questions;
}

void OpeningQuestions::opening_with(MessageId create, const CreateRequest& request,
                                    const std::vector<Slice>& questions) {
  Opening opening{.kind = kind_of(request), .questions = {}};
  for (const Slice& question : questions) opening.questions.emplace_back(as_text(question.bytes()));
  opening_.insert_or_assign(create, std::move(opening));
}

std::optional<OpeningQuestions::Opening> OpeningQuestions::opened(MessageId create) {
  auto found = opening_.extract(create);
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
}

}  // namespace longhaul::smb::smb2
