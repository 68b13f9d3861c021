// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/message.h"

namespace longhaul::smb::smb2 {

Result<Message> parse_message(const Frame& frame) {
  auto elements = parse_elements(frame.message());
  if (!elements) return elements.error();
  for (const Element& element : *elements)
    if (element.header.command > kLastCommand) return Error::malformed_header;
  return Message(frame, std::move(*elements));
}

Message kept(const Message& message) {
  constexpr std::size_t kCopied = 16 << 10;
  if (message.frame.bytes.size() > kCopied) return message;
  auto copy = parse_message({message.frame.kind, Slice::copy_of(message.frame.bytes.bytes())});
  return copy ? std::move(*copy) : message;  // it was parsed before
}

}  // namespace longhaul::smb::smb2
