// SPDX-License-Identifier: Apache-2.0
// Frames in sending order: small parts are written here; payloads stay in their stream's buffers, so that
// only the encryption reads them. Valid until the next call of the session.
#pragma once
#include <span>
#include <vector>

#include "codecs/byte_writer.h"

namespace longhaul::link {

class FrameBatch {
 public:
  // For appending.
  Buffer& written() { return written_; }

  void borrow(Bytes payload) {
    // Encrypting a separate piece costs more than a short copy.
    if (payload.size() < kCopyBelow) return append(written_, payload);
    cut();
    borrowed_bytes_ += payload.size();
    pieces_.push_back({payload, 0});
  }

  std::size_t size() const { return written_.size() + borrowed_bytes_; }
  bool empty() const { return size() == 0; }

  // All bytes; valid until the next change.
  std::span<const Bytes> bytes() {
    cut();
    views_.clear();
    std::size_t at = 0;
    for (const Piece& piece : pieces_) {
      views_.push_back(piece.written ? Bytes(written_).subspan(at, piece.written) : piece.borrowed);
      at += piece.written;
    }
    return views_;
  }

  void clear() {
    written_.clear();
    pieces_.clear();
    cut_at_ = borrowed_bytes_ = 0;
  }

 private:
  static constexpr std::size_t kCopyBelow = 1024;
  struct Piece {
    Bytes borrowed;
    std::size_t written;  // bytes of written_ after those of earlier pieces; 0: the piece is borrowed
  };

  void cut() {
    if (written_.size() > cut_at_) pieces_.push_back({{}, written_.size() - cut_at_});
    cut_at_ = written_.size();
  }

  Buffer written_;
  std::vector<Piece> pieces_;
  std::vector<Bytes> views_;
  std::size_t cut_at_ = 0, borrowed_bytes_ = 0;
};

}  // namespace longhaul::link
