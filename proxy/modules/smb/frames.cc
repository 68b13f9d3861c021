// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/frames.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>
#include <utility>

namespace longhaul::smb {
namespace {

// RFC 1002, section 4.3.1
enum PacketType : std::uint8_t {
  kSessionMessage = 0x00,
  kSessionRequest = 0x81,
  kKeepAlive = 0x85,
};
constexpr std::size_t kProtocolIdBytes = 4;
// Two names of at most 255 bytes each (RFC 1002, section 4.3.2), and some margin.
constexpr std::size_t kMaxSessionPacketBytes = 1024;

}  // namespace

void FrameSplitter::push(Slice piece) {
  if (piece.empty()) return;
  held_bytes_ += piece.size();
  if (missing_ > 0) {
    std::size_t taken = std::min(missing_, piece.size());
    fill_joined(piece.bytes().first(taken));
    if (taken == piece.size()) return;
    piece = piece.from(taken);
  }
  pieces_.push_back(std::move(piece));
}

Result<std::optional<Frame>> FrameSplitter::next(Bare bare) {
  if (joined_.empty()) {
    auto head = read_head(bare);
    if (!head) return head.error();
    if (!*head) return std::optional<Frame>{};
    const std::size_t frame_bytes = (*head)->frame_bytes;
    if (pieces_[first_].size() >= frame_bytes) {
      Frame frame{(*head)->kind, pieces_[first_].sub(0, frame_bytes)};
      drop(frame_bytes);
      held_bytes_ -= frame_bytes;
      return std::optional(std::move(frame));
    }
    // Memory of the frame's size at once: its pages are allocated as bytes arrive, and the size is bounded.
    joined_ = Slice::with_room({}, frame_bytes, room_);
    joined_kind_ = (*head)->kind;
    missing_ = frame_bytes;
    while (missing_ > 0 && first_ < pieces_.size()) {
      std::size_t taken = std::min(missing_, pieces_[first_].size());
      fill_joined(pieces_[first_].bytes().first(taken));
      drop(taken);
    }
  }
  if (missing_ > 0) return std::optional<Frame>{};
  held_bytes_ -= joined_.size();
  room_ = nullptr;
  return std::optional(Frame{joined_kind_, std::exchange(joined_, {})});
}

std::vector<Slice> FrameSplitter::take_rest() {
  std::vector<Slice> rest;
  if (!joined_.empty()) rest.push_back(std::exchange(joined_, {}));
  std::move(pieces_.begin() + static_cast<std::ptrdiff_t>(first_), pieces_.end(), std::back_inserter(rest));
  pieces_ = {};
  first_ = held_bytes_ = missing_ = 0;
  room_ = nullptr;
  return rest;
}

// RFC 1002, section 4.3.1, and [MS-SMB2] section 2.1
Result<std::optional<FrameSplitter::Head>> FrameSplitter::read_head(Bare bare) const {
  constexpr std::optional<Head> need_more;
  std::byte bytes[kFrameHeadBytes + kProtocolIdBytes];
  const std::size_t held = peek(bytes);
  if (held == 0) return need_more;
  const auto type = std::to_integer<std::uint8_t>(bytes[0]);
  const bool session_packet = type >= kSessionRequest && type <= kKeepAlive;
  if (type != kSessionMessage && !session_packet) return Error::unknown_frame;
  if (held < kFrameHeadBytes) return need_more;

  // On port 139 seven bits of the second byte are reserved and the eighth belongs to the length.
  const auto high = std::to_integer<std::size_t>(bytes[1]);
  if (framing_ == Framing::netbios && high > 1) return Error::frame_too_large;
  const std::size_t message_bytes =
      high << 16 | std::to_integer<std::size_t>(bytes[2]) << 8 | std::to_integer<std::size_t>(bytes[3]);
  const std::size_t frame_bytes = kFrameHeadBytes + message_bytes;
  if (session_packet) {
    if (message_bytes > kMaxSessionPacketBytes) return Error::unknown_frame;
    const int kind = static_cast<int>(FrameKind::session_request) + type - kSessionRequest;
    return std::optional(Head{static_cast<FrameKind>(kind), frame_bytes});
  }
  if (frame_bytes > max_frame_bytes_) return Error::frame_too_large;

  // The message's first four bytes, as far as available.
  const Bytes id = Bytes(bytes).first(held).subspan(kFrameHeadBytes);
  static constexpr std::byte kSmb[] = {std::byte{'S'}, std::byte{'M'}, std::byte{'B'}};
  const bool may_have_header = message_bytes >= kProtocolIdBytes &&
                               (id.empty() || id[0] >= std::byte{0xFC}) &&
                               (id.empty() || std::equal(id.begin() + 1, id.end(), kSmb));
  if (!may_have_header) {
    if (bare == Bare::unexpected) return Error::unknown_frame;
    return std::optional(Head{FrameKind::bare, frame_bytes});
  }
  if (id.size() < kProtocolIdBytes) return need_more;
  static constexpr FrameKind kinds[] = {FrameKind::smb2_compressed, FrameKind::smb2_transform,
                                        FrameKind::smb2, FrameKind::smb1};
  return std::optional(Head{kinds[std::to_integer<std::size_t>(id[0]) - 0xFC], frame_bytes});
}

// As many of the first bytes in pieces_ as fit.
std::size_t FrameSplitter::peek(MutableBytes into) const {
  std::size_t copied = 0;
  for (std::size_t i = first_; i < pieces_.size() && copied < into.size(); ++i) {
    const Bytes piece = pieces_[i].bytes();
    const std::size_t taken = std::min(piece.size(), into.size() - copied);
    std::memcpy(into.data() + copied, piece.data(), taken);
    copied += taken;
  }
  return copied;
}

void FrameSplitter::fill_joined(Bytes bytes) {
  std::memcpy(room_, bytes.data(), bytes.size());
  room_ += bytes.size();
  joined_.extend(bytes.size());
  missing_ -= bytes.size();
}

// Removes bytes from the first piece.
void FrameSplitter::drop(std::size_t bytes) {
  Slice& piece = pieces_[first_];
  piece = piece.from(bytes);
  if (!piece.empty()) return;
  piece = {};
  if (++first_ == pieces_.size()) {
    pieces_.clear();
    first_ = 0;
  } else if (first_ >= 64 && first_ > pieces_.size() / 2) {
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void write_frame_head(std::size_t message_bytes, std::byte* head) {
  assert(message_bytes < 1u << 24);
  head[0] = std::byte{kSessionMessage};
  head[1] = std::byte(message_bytes >> 16 & 0xff);
  head[2] = std::byte(message_bytes >> 8 & 0xff);
  head[3] = std::byte(message_bytes & 0xff);
}

}  // namespace longhaul::smb
