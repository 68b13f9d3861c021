// SPDX-License-Identifier: Apache-2.0
// Finds the end of a message's body and, if required, extracts its content without the framing (RFC 9112,
// section 7.1).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/slice.h"
#include "proxy/modules/http/head.h"

namespace longhaul::http {

// Bytes copied out of a body, in pieces of some 32 KiB.
class Content {
 public:
  void add(Bytes bytes);
  std::uint64_t size() const { return size_; }
  std::vector<Slice> take();

 private:
  std::vector<Slice> pieces_;
  Buffer tail_;
  std::uint64_t size_ = 0;
};

class Body {
 public:
  Body() = default;
  explicit Body(Framing framing);

  // Returns how many of `bytes` belong to the body, or nullopt if the framing is invalid. Adds its content to
  // `content` if that is not null.
  std::optional<std::size_t> take(Bytes bytes, Content* content);
  bool done() const { return state_ == State::done; }
  bool ends_with_connection() const { return state_ == State::rest; }
  bool has_trailers() const { return has_trailers_; }

 private:
  static constexpr std::size_t kMostLine = 4096, kMostTrailerBytes = 64 * 1024;
  enum class State : std::uint8_t { done, length, rest, size_line, chunk, chunk_end, trailers } state_ = State::done;

  bool line_done();

  std::uint64_t left_ = 0;  // of the content, or of the current chunk
  std::string line_;        // an incomplete line of the framing
  std::size_t trailer_bytes_ = 0;
  bool has_trailers_ = false;
};

}  // namespace longhaul::http
