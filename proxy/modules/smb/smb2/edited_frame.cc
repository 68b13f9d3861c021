// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/edited_frame.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/frames.h"

namespace longhaul::smb::smb2 {
namespace {

// Longer frames are copied only up to the changed fields.
constexpr std::size_t kCopiedFront = 256;
constexpr std::size_t kCopiedWhole = 2048;

// Fields of the header and of bodies, counted from the element's first byte.
constexpr std::size_t kStatusAt = 8;
constexpr std::size_t kCreditsAt = 14;
constexpr std::size_t kMessageIdAt = 24;
constexpr std::size_t kRequestedOplockAt = kHeaderBytes + 3;
constexpr std::size_t kGrantedOplockAt = kHeaderBytes + 2;

}  // namespace

// 2.2.15, 2.2.17, 2.2.19, 2.2.21, 2.2.24.1, 2.2.26, 2.2.31, 2.2.33, 2.2.35, 2.2.37, 2.2.39
std::optional<std::size_t> file_id_at(Command command) {
  switch (command) {
    case Command::close:
    case Command::flush:
    case Command::lock:
    case Command::ioctl:
    case Command::query_directory:
    case Command::change_notify:
    case Command::oplock_break:
      return kHeaderBytes + 8;
    case Command::read:
    case Command::write:
    case Command::set_info:
      return kHeaderBytes + 16;
    case Command::query_info:
      return kHeaderBytes + 24;
    default:
      return std::nullopt;
  }
}

std::optional<FileId> named_file(const Element& request) {
  const auto at = file_id_at(request.header.command);
  if (!at || request.bytes.size() < *at + 16) return std::nullopt;
  return FileId{load_le<std::uint64_t>(request.bytes, *at), load_le<std::uint64_t>(request.bytes, *at + 8)};
}

EditedFrame::EditedFrame(const Slice& frame) {
  const std::size_t copied = frame.size() <= kCopiedWhole ? frame.size() : kCopiedFront;
  front_ = Slice::with_room(frame.bytes().first(copied), copied, memory_);
  memory_ -= copied;
  back_ = frame.from(copied);
}

void EditedFrame::set_message_id(MessageId id, std::size_t element) {
  store_le(at(element, kMessageIdAt, sizeof id.number()), id.number());
}
void EditedFrame::set_credits(std::uint16_t credits, std::size_t element) {
  store_le(at(element, kCreditsAt, sizeof credits), credits);
}
void EditedFrame::set_status(Status status, std::size_t element) {
  store_le(at(element, kStatusAt, sizeof status), static_cast<std::uint32_t>(status));
}
void EditedFrame::set_requested_oplock(OplockLevel level, std::size_t element) {
  *at(element, kRequestedOplockAt, 1) = static_cast<std::byte>(level);
}
void EditedFrame::set_granted_oplock(OplockLevel level, std::size_t element) {
  *at(element, kGrantedOplockAt, 1) = static_cast<std::byte>(level);
}

void EditedFrame::set_file_id(const FileId& file, std::size_t at, std::size_t element) {
  std::byte* id = this->at(element, at, 16);
  store_le(id, file.persistent_part);
  store_le(id + 8, file.volatile_part);
}

// Memory of a field's `bytes` for writing. Edits far after the front (of a compound) extend it.
std::byte* EditedFrame::at(std::size_t element, std::size_t offset, std::size_t bytes) {
  const std::size_t begin = kFrameHeadBytes + element + offset, end = begin + bytes;
  assert(end <= front_.size() + back_.size());
  if (end > front_.size()) {
    const std::size_t more = end - front_.size();
    std::byte* memory = nullptr;
    Slice longer = Slice::unfilled(end, memory);
    std::memcpy(memory, front_.bytes().data(), front_.size());
    std::memcpy(memory + front_.size(), back_.bytes().data(), more);
    front_ = std::move(longer);
    memory_ = memory;
    back_ = back_.from(more);
  }
  return memory_ + begin;
}

EditedFrame::Parts EditedFrame::take() && { return {std::move(front_), std::move(back_)}; }

Slice EditedFrame::whole() && {
  return back_.empty() ? std::move(front_) : Slice::joined(front_.bytes(), back_.bytes());
}

}  // namespace longhaul::smb::smb2
