// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/early.h"

#include <algorithm>

namespace longhaul::http::h2 {
namespace {

constexpr std::size_t kFrameHead = 9, kMostRequests = 100, kMostSettings = 32;
// Types and flags of frames (RFC 9113, section 6).
constexpr std::uint8_t kHeaders = 1, kPriority = 2, kSettings = 4, kPushPromise = 5, kWindowUpdate = 8,
                       kContinuation = 9, kLastType = 9;
constexpr std::uint8_t kEndStream = 1, kEndHeaders = 4;

struct Frame {
  std::size_t size;  // with its head
  std::uint8_t type, flags;
  StreamId stream;
  Bytes content;
};

std::uint32_t number(Bytes bytes) {
  std::uint32_t value = 0;
  for (const std::byte each : bytes) value = value << 8 | std::to_integer<std::uint32_t>(each);
  return value;
}

std::size_t size_of(Bytes head) { return kFrameHead + number(head.first(3)); }

std::optional<Frame> frame_at(Bytes bytes) {
  if (bytes.size() < kFrameHead || bytes.size() < size_of(bytes)) return std::nullopt;
  return Frame{.size = size_of(bytes),
               .type = std::to_integer<std::uint8_t>(bytes[3]),
               .flags = std::to_integer<std::uint8_t>(bytes[4]),
               .stream = static_cast<StreamId>(number(bytes.subspan(5, 4)) & 0x7FFFFFFF),
               .content = bytes.subspan(kFrameHead, size_of(bytes) - kFrameHead)};
}

bool add_settings(const Frame& frame, Session::Settings& all) {
  if (frame.flags != 0 || frame.stream != 0 || frame.content.size() % 6 != 0) return false;
  for (Bytes rest = frame.content; !rest.empty(); rest = rest.subspan(6)) {
    if (all.size() == kMostSettings) return false;
    all.emplace_back(static_cast<std::uint16_t>(number(rest.first(2))), number(rest.subspan(2, 4)));
  }
  return true;
}

}  // namespace

std::optional<std::size_t> frame_end(Bytes said, std::size_t at) {
  std::size_t end = kPreface.size();
  while (end < at) {
    if (said.size() < end + kFrameHead) return std::nullopt;
    end += size_of(said.subspan(end));
  }
  return end;
}

bool has_no_headers(Bytes frames) {
  while (const auto frame = frame_at(frames)) {
    if (frame->type == kHeaders || frame->type == kPushPromise || frame->type == kContinuation) return false;
    frames = frames.subspan(frame->size);
  }
  return frames.empty();
}

std::optional<Early> read_early(Bytes said) {
  const std::string_view text(reinterpret_cast<const char*>(said.data()), said.size());
  if (!text.starts_with(kPreface)) return std::nullopt;
  Early early;
  StreamId last = 0;
  for (Bytes rest = said.subspan(kPreface.size()); !rest.empty();) {
    const auto frame = frame_at(rest);
    if (!frame) return std::nullopt;
    rest = rest.subspan(frame->size);
    // Exactly one, and first (RFC 9113, section 3.4): with a second one it would be unknown which of them the
    // server acknowledges.
    if (early.settings.has_value() == (frame->type == kSettings)) return std::nullopt;
    switch (frame->type) {
      case kSettings:
        if (!add_settings(*frame, early.settings.emplace())) return std::nullopt;
        break;
      case kHeaders:
        if ((frame->flags & kEndStream) == 0 || (frame->flags & kEndHeaders) == 0 || frame->stream <= last ||
            ++early.requests > kMostRequests)
          return std::nullopt;
        last = frame->stream;
        break;
      case kWindowUpdate:
        if (frame->content.size() != 4 || frame->stream > last) return std::nullopt;
        early.windows.emplace_back(frame->stream,
                                   static_cast<std::int32_t>(number(frame->content) & 0x7FFFFFFF));
        break;
      case kPriority:
        break;
      default:
        if (frame->type <= kLastType) return std::nullopt;
        break;  // extensions, ignored by both sides if unknown (section 5.5)
    }
  }
  return early;
}

bool may_be_server(Bytes first) {
  static constexpr std::size_t kMostSize = kMostSettings * 6;
  for (std::size_t at = 0; at < std::min(first.size(), kFrameHead); ++at) {
    const auto byte = std::to_integer<std::uint8_t>(first[at]);
    if (at == 2 ? byte % 6 != 0 || byte > kMostSize : byte != (at == 3 ? kSettings : 0)) return false;
  }
  return true;
}

}  // namespace longhaul::http::h2
