// SPDX-License-Identifier: Apache-2.0
// See question.h.
#include "proxy/modules/smb/smb2/question.h"

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {

std::optional<Slice> question_of(const QueryInfoRequest& request) {
  if (!request.input.empty()) return std::nullopt;
  Buffer out;
  LittleEndianWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(request.type));
  writer.u8(request.info_class);
  writer.u32(request.output_bytes);
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

}  // namespace longhaul::smb::smb2
