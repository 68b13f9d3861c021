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
    const bool is_encrypted = frame.kind == FrameKind::smb2_transform;
    leave_alone(is_encrypted ? unopened(reasons::smb_encrypted) : reasons::smb_not_understood);
    ids_are_fixed_ |= is_encrypted;  // its own is not known
    return std::nullopt;
  }
  auto message = parse_message(frame);
  if (message) return std::move(*message);
  leave_alone(reasons::smb_not_understood);
  return std::nullopt;
}

void Connection::leave_alone(modules::Reason reason) {
  all_untouchable_ = true;
  untouchable_since(reason);
}

void Connection::make_untouchable(SessionId session, modules::Reason reason) {
  if (sessions_.contains(session) || sessions_.size() < kMostSessions) {
    sessions_[session].untouchable = true;
  } else {
    all_untouchable_ = true;
  }
  untouchable_since(reason);
}

void Connection::session_expired(SessionId session) {
  if (sessions_.contains(session) || sessions_.size() < kMostSessions) {
    sessions_[session].expired = true;
  } else {
    all_untouchable_ = true;
  }
  untouchable_since(reasons::smb_session);
}

void Connection::untouchable_since(modules::Reason reason) {
  if (!any_untouchable()) why_untouchable_ = reason;
  if (reason != reasons::smb_not_understood && reason != reasons::smb_session) ids_are_fixed_ = true;
}

bool Connection::expired(SessionId session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.expired;
}

bool Connection::untouchable(SessionId session) const {
  if (all_untouchable_) return true;
  auto found = sessions_.find(session);
  return found != sessions_.end() && (found->second.untouchable || found->second.expired);
}

const Tree* Connection::tree(SessionId session, TreeId tree) const {
  auto found = trees_.find({session, tree});
  return found == trees_.end() ? nullptr : &found->second;
}

Open* Connection::open(const FileId& file) {
  auto found = opens_.find(file);
  return found == opens_.end() ? nullptr : found->second.get();
}

Open* Connection::open(const OpenKey& key) {
  Open* found = open(file_of(key));
  return found && found->key == key ? found : nullptr;
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

std::size_t Connection::LeaseHash::operator()(const LeaseKey& key) const {
  return KeyedHash{}(load_le<std::uint64_t>(key, 0), load_le<std::uint64_t>(key, 8));
}

void Connection::moved(Open& open, std::u16string to) {
  name_bytes_ += to.size() * sizeof(char16_t);
  name_bytes_ -= open.moved_to.size() * sizeof(char16_t);
  open.moved_to = std::move(to);
}

std::size_t Connection::state_bytes() const {
  return opens_.size() * kOpenBytes + name_bytes_ + pending_.size() * kPendingBytes;
}

}  // namespace longhaul::smb::smb2
