// SPDX-License-Identifier: Apache-2.0
// See compound.h.
#include "proxy/modules/smb/smb2/compound.h"

#include <algorithm>
#include <array>

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kAlignment = 8;
// 2.2.2: StructureSize 9, no error data, one meaningless byte.
constexpr std::array<std::byte, 9> kErrorBody{std::byte{9}};

}  // namespace

Slice build_compound(std::span<const CompoundPart> parts) {
  Buffer out(kFrameHeadBytes);
  for (const CompoundPart& part : parts) {
    Header header = part.header;
    const bool last = &part == &parts.back();
    const std::size_t bytes = kHeaderBytes + part.body.size();
    const std::size_t padding = last ? 0 : (kAlignment - bytes % kAlignment) % kAlignment;
    header.next_command = last ? 0 : static_cast<std::uint32_t>(bytes + padding);
    write_header(header, out);
    append(out, part.body);
    out.insert(out.end(), padding, std::byte{0});
  }
  write_frame_head(out.size() - kFrameHeadBytes, out.data());
  return Slice::copy_of(out);
}

Bytes error_body() { return kErrorBody; }

std::optional<Message> alone(const Element& element, const Pending& request) {
  Header header = element.header;
  header.flags &= ~header_flags::related;
  header.next_command = 0;
  header.session_id = request.session;
  header.tree_id = request.tree;
  Buffer body;
  append(body, element.body());
  if (const auto at = file_id_at(header.command)) {
    const std::size_t in_body = *at - kHeaderBytes;
    if (body.size() < in_body + 16) return std::nullopt;
    store_le(body.data() + in_body, request.file.persistent_part);
    store_le(body.data() + in_body + 8, request.file.volatile_part);
  }
  auto message = parse_message({.kind = FrameKind::smb2, .bytes = build_message(header, body)});
  return message ? std::optional(std::move(*message)) : std::nullopt;
}

Slice with_statuses(const Message& message, std::span<const NewStatus> changed) {
  CompoundParts parts;
  for (const Element& element : message.elements) {
    parts.push_back({element.header, element.body()});
    const auto found = std::find_if(changed.begin(), changed.end(),
                                    [&](const NewStatus& each) { return each.element == &element; });
    if (found == changed.end()) continue;
    parts.back().header.status = found->status;
    parts.back().body = kErrorBody;
  }
  return build_compound(parts);
}

}  // namespace longhaul::smb::smb2
