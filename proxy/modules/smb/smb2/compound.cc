// SPDX-License-Identifier: Apache-2.0
// See compound.h.
#include "proxy/modules/smb/smb2/compound.h"

#include <algorithm>
#include <array>

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kAlignment = 8;
// 2.2.2: StructureSize 9, no error data, one byte that says nothing.
constexpr std::array<std::byte, 9> kErrorBody{std::byte{9}};

}  // namespace

Slice with_statuses(const Message& message, std::span<const NewStatus> changed) {
  Buffer out(kFrameHeadBytes);
  for (const Element& element : message.elements) {
    const auto found = std::find_if(changed.begin(), changed.end(),
                                    [&](const NewStatus& each) { return each.element == &element; });
    Header header = element.header;
    Bytes body = element.body();
    if (found != changed.end()) {
      header.status = found->status;
      body = kErrorBody;
    }
    const bool last = &element == &message.elements.back();
    const std::size_t bytes = kHeaderBytes + body.size();
    const std::size_t padding = last ? 0 : (kAlignment - bytes % kAlignment) % kAlignment;
    header.next_command = last ? 0 : static_cast<std::uint32_t>(bytes + padding);
    write_header(header, out);
    append(out, body);
    out.insert(out.end(), padding, std::byte{0});
  }
  write_frame_head(out.size() - kFrameHeadBytes, out.data());
  return Slice::copy_of(out);
}

}  // namespace longhaul::smb::smb2
