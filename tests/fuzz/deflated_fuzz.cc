// SPDX-License-Identifier: Apache-2.0
// Blocks with streams of deflate in them, whole, cut and changed: what was opened is closed to the same
// bytes; and what nobody opened is closed to nothing that leaves its memory.
#include <string>
#include <vector>

#include "codecs/reduction/deflated.h"
#include "codecs/reduction/deflated_streams.h"
#include "fuzz/choices.h"
#include "fuzz/target.h"

namespace longhaul::fuzz::deflated_target {
using namespace longhaul::reduction;

namespace {

void close(Bytes opened, std::size_t room) {
  std::vector<std::byte> content(room);  // of exactly that size, so that a sanitizer sees the next byte
  if (auto size = close_deflated(opened, content)) require(*size <= room);
}

std::string some_text(Choices& in) {
  std::string text;
  for (unsigned words = in.byte() * (in.below(4) == 0 ? 40u : 2u); words > 0; --words)
    text += "word" + std::to_string(words * 7919 % (3 + in.below(200)));
  return text + std::string(as_text(in.some(60)));
}

}  // namespace

FUZZ_TARGET(deflated) {
  Choices in(std::as_bytes(std::span(data, size)));
  close(in.some(200), in.byte());
  std::string block;
  for (unsigned pieces = in.below(6); pieces > 0 && block.size() < 30'000; --pieces) {
    block += as_text(in.some(30));
    const Deflated how{.level = static_cast<int>(1 + in.below(9)),
                       .window_bits = in.below(2) ? 15 + 16 : 15,
                       .memory = in.below(4) ? 8 : 9};
    std::string stream = deflated(some_text(in), how);
    if (in.below(4) == 0 && !stream.empty())
      stream[in.byte() * 7u % stream.size()] ^= static_cast<char>(in.byte());
    if (in.below(4) == 0) stream.resize(stream.size() - std::min<std::size_t>(stream.size(), in.byte()));
    block += stream;
  }
  block.resize(std::min(block.size(), kMaxBlockPlainBytes));
  Buffer opened;
  if (!open_deflated(as_bytes(block), opened)) return 0;
  require(opened.size() <= kMaxOpenedBytes);
  std::vector<std::byte> closed(block.size());
  require(close_deflated(opened, closed) == block.size());
  require(as_text(closed) == block);
  for (unsigned changes = in.below(4); changes > 0; --changes)
    opened[in.byte() * 3u % opened.size()] ^= std::byte(in.byte() | 1);
  close(opened, in.below(2) ? block.size() : in.byte() * 16u);
  return 0;
}

}  // namespace longhaul::fuzz::deflated_target
