// SPDX-License-Identifier: Apache-2.0
// Collects the raw bytes of the stream that belong to a message of the twin. framed_module.h decides what may
// be received between them.
#pragma once
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "codecs/slice.h"

namespace longhaul::twin {

template <class Message>
class Attachment {
 public:
  struct Whole {
    Message message;
    Slice bytes;
  };

  bool is_pending() const { return message_.has_value(); }
  std::size_t held_bytes() const { return is_pending() ? bytes_.size() - missing_ : 0; }

  void begin(Message message, std::uint32_t bytes) {
    bytes_ = Slice::unfilled(bytes, room_);
    missing_ = bytes;
    message_ = std::move(message);
  }

  // Takes the message's bytes from the start of `bytes`; returns the message when it is complete. The bytes
  // are copied into one piece: the host's slices may be small parts of a large buffer.
  std::optional<Whole> take(Slice& bytes) {
    const std::size_t taken = std::min(bytes.size(), missing_);
    std::memcpy(room_, bytes.bytes().data(), taken);
    room_ += taken;
    missing_ -= taken;
    bytes = bytes.from(taken);
    if (missing_ != 0) return std::nullopt;
    Whole whole{std::move(*message_), std::exchange(bytes_, {})};
    message_.reset();
    return whole;
  }

 private:
  std::optional<Message> message_;
  Slice bytes_;
  std::byte* room_ = nullptr;
  std::size_t missing_ = 0;
};

}  // namespace longhaul::twin
