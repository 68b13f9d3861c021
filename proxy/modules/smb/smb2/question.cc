// SPDX-License-Identifier: Apache-2.0
// See question.h.
#include "proxy/modules/smb/smb2/question.h"

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

// [MS-FSCC] 2.4 and 2.5: classes whose responses have a fixed size. 0: others.
std::uint32_t answer_bytes(InfoType type, std::uint8_t info_class) {
  if (type == InfoType::file_system) {
    switch (info_class) {
      case fs_info::size:
        return 24;
      case fs_info::device:
        return 8;
      case fs_info::full_size:
        return 32;
      default:
        return 0;
    }
  }
  if (type != InfoType::file) return 0;
  switch (info_class) {
    case file_info::basic:
      return 40;
    case file_info::standard:
      return 24;
    case file_info::internal:
    case file_info::position:
    case file_info::attribute_tag:
      return 8;
    case file_info::ea:
    case file_info::access:
    case file_info::mode:
    case file_info::alignment:
      return 4;
    case file_info::network_open:
      return 56;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Slice> question_of(const QueryInfoRequest& request) {
  if (!request.input.empty()) return std::nullopt;
  Buffer out;
  LittleEndianWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(request.type));
  writer.u8(request.info_class);
  const std::uint32_t needed = answer_bytes(request.type, request.info_class);
  const bool enough = needed != 0 && request.output_bytes >= needed;
  writer.u32(enough ? needed : request.output_bytes);
  writer.u32(request.additional);
  writer.u32(request.flags);
  return Slice::copy_of(out);
}

std::optional<QueryInfoRequest> request_of(Bytes question) {
  LittleEndianReader reader(question);
  QueryInfoRequest request;
  request.type = InfoType{reader.u8()};
  request.info_class = reader.u8();
  request.output_bytes = reader.u32();
  request.additional = reader.u32();
  request.flags = reader.u32();
  if (!reader.ok() || reader.remaining() != 0) return std::nullopt;
  return request;
}

Slice joined(const std::vector<Slice>& questions) {
  Buffer out;
  for (const Slice& question : questions) append(out, question.bytes());
  return Slice::copy_of(out);
}

std::vector<Slice> questions_in(Bytes joined) {
  std::vector<Slice> questions;
  for (; joined.size() >= kQuestionKeyBytes; joined = joined.subspan(kQuestionKeyBytes))
    questions.push_back(Slice::copy_of(joined.first(kQuestionKeyBytes)));
  return questions;
}

bool is_of_the_file(std::uint8_t info_class) {
  switch (info_class) {
    case file_info::basic:
    case file_info::standard:
    case file_info::internal:
    case file_info::ea:
    case file_info::network_open:
    case file_info::attribute_tag:
      return true;
    default:
      return false;
  }
}

}  // namespace longhaul::smb::smb2
