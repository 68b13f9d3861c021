// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/gathered.h"

#include <algorithm>
#include <cstring>

#include "proxy/modules/smb/frames.h"

namespace longhaul::smb::seal {
namespace {

std::size_t frame_bytes(Bytes head) {
  return kFrameHeadBytes + (std::to_integer<std::size_t>(head[1]) << 16 |
                            std::to_integer<std::size_t>(head[2]) << 8 |
                            std::to_integer<std::size_t>(head[3]));
}

}  // namespace

std::byte* split_front(std::vector<Slice>& pieces, std::size_t size) {
  std::byte* memory = nullptr;
  Slice front = Slice::unfilled(size, memory);
  std::size_t filled = 0, used = 0;
  for (; filled < size; ++used) {
    const std::size_t taken = std::min(size - filled, pieces[used].size());
    std::memcpy(memory + filled, pieces[used].bytes().data(), taken);
    filled += taken;
    if (taken < pieces[used].size()) {
      pieces[used] = pieces[used].from(taken);
      break;
    }
  }
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(used));
  pieces.insert(pieces.begin(), std::move(front));
  return memory;
}

void Gathered::push(Slice bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  pieces_.push_back(std::move(bytes));
}

std::optional<Gathered::Whole> Gathered::next() {
  if (bytes_ < kFrameHeadBytes) return std::nullopt;
  if (pieces_.front().size() < kFrameHeadBytes) (void)split_front(pieces_, kFrameHeadBytes);
  const std::size_t size = frame_bytes(pieces_.front().bytes());
  if (bytes_ < size) return std::nullopt;
  bytes_ -= size;
  if (bytes_ == 0) return Whole{std::exchange(pieces_, {}), size};
  Whole whole{{}, size};
  std::size_t missing = size, used = 0;
  for (; missing >= pieces_[used].size(); ++used) {
    missing -= pieces_[used].size();
    whole.pieces.push_back(std::move(pieces_[used]));
  }
  if (missing > 0) {
    whole.pieces.push_back(pieces_[used].sub(0, missing));
    pieces_[used] = pieces_[used].from(missing);
  }
  pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(used));
  return whole;
}

}  // namespace longhaul::smb::seal
