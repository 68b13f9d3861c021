// SPDX-License-Identifier: Apache-2.0
// What is known of a connection now, and what ends that; see connection.h.
#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {
namespace {

// What one takes in memory, about, with its place in tables.
constexpr std::size_t kOpenBytes = 512, kPendingBytes = 384;

}  // namespace

std::optional<Message> Connection::parse(const Frame& frame) {
  if (frame.kind != FrameKind::smb2) {
    if (frame.kind == FrameKind::smb2_transform) {
      sessions_.came_encrypted();
    } else {
      sessions_.leave_alone(reasons::smb_not_understood);
    }
    return std::nullopt;
  }
  auto message = parse_message(frame);
  if (message) return std::move(*message);
  sessions_.leave_alone(reasons::smb_not_understood);
  return std::nullopt;
}

const Tree* Connection::tree(SessionId session, TreeId tree) const {
  auto found = trees_.find({session, tree});
  return found == trees_.end() ? nullptr : &found->second;
}

const Pending* Connection::pending(MessageId id) const {
  auto found = pending_.find(id);
  return found == pending_.end() ? nullptr : &found->second;
}

bool Connection::being_opened(const FileGroup& file, MessageId except) const {
  const Pending* own = pending(except);
  const bool counts_own = own && own->opens_file && may_be_same_file(*own->opens_file.group(), file);
  return file.count(&FileCounts::opening) > (counts_own ? 1u : 0u);
}

std::size_t Connection::state_bytes() const {
  return opens_.all().size() * kOpenBytes + opens_.name_bytes() + name_bytes_ +
         pending_.size() * kPendingBytes;
}

}  // namespace longhaul::smb::smb2
