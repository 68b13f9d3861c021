// SPDX-License-Identifier: Apache-2.0
// RESP, the protocol of Redis: cuts requests and replies out of a stream of bytes (https://redis.io/docs/reference/
// protocol-spec). Parsing only; what a request means is left to module.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/result.h"
#include "codecs/slice.h"

namespace longhaul::redis {

// A frame is held whole. Larger ones make the connection opaque.
inline constexpr std::size_t kMaxFrameBytes = 1 << 20;

enum class Direction : std::uint8_t { requests, replies };

struct Frame {
  Slice bytes;
};

// In any pieces; the work is in proportion to the bytes.
class Splitter {
 public:
  void push(Slice piece) { append(bytes_, piece.bytes()); }
  // The next whole frame; nothing: more bytes are needed; an error: not to be understood from here on.
  Result<std::optional<Frame>> next(Direction direction);
  // What no frame was made of. Leaves the splitter empty.
  std::vector<Slice> take_rest();
  std::size_t held_bytes() const { return bytes_.size() - begin_; }

 private:
  enum class Step : std::uint8_t { more, done, wrong };
  Step scan(Direction direction);
  Step scan_element(Direction direction);
  void take_element(std::size_t bytes);

  Buffer bytes_;
  std::size_t begin_ = 0;               // of the frame
  std::size_t at_ = 0, searched_ = 0;   // of the next element, and how far its line has been searched; from begin_
  std::vector<std::uint64_t> missing_;  // elements of the arrays around it, the innermost last
};

// The name, in capitals, and the number of arguments with it. Empty: no such request.
struct Command {
  std::string name;
  std::uint64_t arguments = 0;
};
Command command_of(const Frame& request);

}  // namespace longhaul::redis
