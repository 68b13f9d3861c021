// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/file_position.h"

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

// Its offset in FilePositionInformation and FileAllInformation ([MS-FSCC] 2.4.35 and 2.4.2).
std::optional<std::size_t> offset_in(const Pending& query) {
  if (query.info_type != InfoType::file) return std::nullopt;
  if (query.info_class == file_info::position) return 0;
  if (query.info_class == file_info::all) return 80;
  return std::nullopt;
}

}  // namespace

// Writing may move it or not; servers differ.
void FilePosition::follow(const Message& message, const Pending& request) {
  const Command command = message.header().command;
  if (command == Command::write) position_.reset();
  if (command != Command::set_info || request.info_type != InfoType::file ||
      request.info_class != file_info::position)
    return;
  const auto set = parse_set_info_request(message.first().bytes);
  if (set && set->buffer.size() >= sizeof(std::uint64_t)) position_ = load_le<std::uint64_t>(set->buffer, 0);
}

std::optional<Slice> FilePosition::corrected(const Pending& query, Bytes info) const {
  const auto at = offset_in(query);
  if (!at || !position_ || info.size() < *at + sizeof(*position_)) return std::nullopt;
  Buffer copy;
  append(copy, info);
  store_le(copy.data() + *at, *position_);
  return Slice::copy_of(copy);
}

}  // namespace longhaul::smb::smb2
