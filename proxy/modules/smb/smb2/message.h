// SPDX-License-Identifier: Apache-2.0
// A frame with its elements: parsed once for all parts. Others decide whether it passes, and what it changes
// (connection.h).
#pragma once
#include <utility>

#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2 {

// The elements borrow from the frame.
struct Message {
  explicit Message(const Frame& of, Elements parsed) : frame(of), elements(std::move(parsed)) {}
  Frame frame;
  Elements elements;
  bool single() const { return elements.size() == 1; }
  const Element& first() const { return elements.front(); }
  const Header& header() const { return elements.front().header; }
};
Result<Message> parse_message(const Frame& frame);
// A copy for storing: a frame shares the memory of its neighbours, which may be much larger.
Message kept(const Message& message);

}  // namespace longhaul::smb::smb2
