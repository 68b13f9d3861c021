// SPDX-License-Identifier: Apache-2.0
// See look.h.
#include "proxy/modules/smb/smb2/look.h"

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/compound.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kMostQuestions = 4;

// All information contains the access of the handle, which with_access() replaces.
bool may_be_in_look(const QueryInfoRequest& query) {
  return query.type == InfoType::file && query.input.empty() &&
         (is_of_the_file(query.info_class) || query.info_class == file_info::all);
}

// Whether a later element is about the file of the CREATE, and has no options of its own.
bool follows(const Header& create, const Element& element) {
  constexpr TreeId kPreviousTree = ~TreeId{0};
  constexpr std::uint32_t kFlags = header_flags::priority_mask | header_flags::related;
  const Header& header = element.header;
  if (!header.is_related() || (header.flags & ~kFlags) != 0) return false;
  if (header.session_id != create.session_id && header.session_id != kPreviousSession) return false;
  if (header.tree_id != create.tree_id && header.tree_id != kPreviousTree) return false;
  return header.channel_sequence == 0 && header.charge() == 1 && named_file(element) == kPreviousFile;
}

// [MS-FSCC] 2.4.2: FileAllInformation has AccessFlags after FileBasic, Standard, Internal and EaInformation.
constexpr std::size_t kAccessAt = 40 + 24 + 8 + 4;

Slice with_access(const Slice& all, std::uint32_t access) {
  if (all.size() < kAccessAt + sizeof(access)) return all;
  Buffer copy;
  append(copy, all.bytes());
  store_le(copy.data() + kAccessAt, access);
  return Slice::copy_of(copy);
}

// The attributes of a file that was opened like this and not changed since.
CloseResponse closed_as(Bytes created, std::uint16_t flags) {
  const Slice frame = build_message({}, created);
  const auto opened = parse_create_response(frame.from(kFrameHeadBytes).bytes());
  if (!opened || !(flags & kClosePostQueryAttributes)) return {};
  return {.flags = kClosePostQueryAttributes,
          .times = opened->times,
          .allocation_bytes = opened->allocation_bytes,
          .end_of_file = opened->end_of_file,
          .file_attributes = opened->file_attributes};
}

Slice body_of(const Slice& frame) { return frame.from(kFrameHeadBytes + kHeaderBytes); }

}  // namespace

std::optional<PlainOpen> look_in(const Message& message) {
  const Elements& elements = message.elements;
  if (elements.size() < 2 || elements.size() > 2 + kMostQuestions) return std::nullopt;
  const Element& opening = elements.front();
  if (opening.header.command != Command::create || elements.back().header.command != Command::close ||
      opening.header.charge() != 1)
    return std::nullopt;
  const auto create = parse_create_request(opening.bytes);
  auto look = create ? looking_open(opening.header, *create) : std::nullopt;
  if (!look) return std::nullopt;
  std::vector<Slice> questions;
  for (std::size_t i = 1; i < elements.size(); ++i) {
    if (!follows(opening.header, elements[i])) return std::nullopt;
    if (i + 1 == elements.size()) break;
    if (elements[i].header.command != Command::query_info) return std::nullopt;
    const auto query = parse_query_info_request(elements[i].bytes);
    auto question = query && may_be_in_look(*query) ? question_of(*query) : std::nullopt;
    if (!question) return std::nullopt;
    questions.push_back(std::move(*question));
  }
  look->queries = std::string(as_text(joined(questions).bytes()));
  return look;
}

Slice response_to_look(const Message& message, Bytes created, const std::vector<Slice>& answers) {
  std::vector<Slice> bodies{Slice::copy_of(created)};
  const auto create = parse_create_request(message.first().bytes);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto query = parse_query_info_request(message.elements[i + 1].bytes);
    const bool has_access = create && query && query->info_class == file_info::all;
    const Slice answer = has_access ? with_access(answers[i], create->desired_access) : answers[i];
    bodies.push_back(body_of(build_buffer_response({}, answer.bytes())));
  }
  const auto close = parse_close_request(message.elements.back().bytes);
  bodies.push_back(body_of(build_close_response({}, closed_as(created, close ? close->flags : 0))));

  // 3.3.4.1.3: the responses name the session and the tree, and all but the first are marked as related.
  CompoundParts parts;
  for (std::size_t i = 0; i < message.elements.size(); ++i) {
    Header header = answer_to(message.elements[i].header, Status::success);
    header.session_id = message.header().session_id;
    header.tree_id = message.header().tree_id;
    if (i > 0) header.flags |= header_flags::related;
    parts.push_back({header, bodies[i].bytes()});
  }
  return build_compound(parts);
}

}  // namespace longhaul::smb::smb2
