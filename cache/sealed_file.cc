// SPDX-License-Identifier: Apache-2.0
#include "cache/sealed_file.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "cache/error.h"

namespace longhaul::cache {
namespace {

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
std::span<const unsigned char> raw(Bytes bytes) {
  return {reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool SealedFile::header(Bytes text, Bytes bound, Buffer& out) {
  append(out, as_bytes(magic_));
  append(out, salt_);
  return part(kHeaderPart, text, bound, out);
}

bool SealedFile::part(std::uint32_t number, Bytes text, Bytes bound, Buffer& out) {
  const std::size_t tag = out.size();
  out.resize(tag + kAeadTagBytes);
  append(out, text);
  return cipher_->seal_whole(part_nonce(number), raw(bound), MutableBytes(out).subspan(tag + kAeadTagBytes),
                             raw(out.data() + tag));
}

SealedFile::Content::Content(SealedFile& file, std::uint32_t first_piece, Bytes bound,
                             std::span<const Slice> parts)
    : file_(file), piece_(first_piece), bound_(bound), parts_(parts) {
  for (const Slice& part : parts) left_ += part.size();
}

bool SealedFile::Content::start_piece() { return file_.cipher_->start(part_nonce(piece_++), raw(bound_)); }

Bytes SealedFile::Content::take(std::size_t most) {
  while (taken_ == parts_.front().size()) {
    parts_ = parts_.subspan(1);
    taken_ = 0;
  }
  Bytes part = parts_.front().bytes().subspan(taken_);
  part = part.first(std::min(part.size(), most));
  taken_ += part.size();
  return part;
}

bool SealedFile::Content::add(Bytes bytes, std::byte* out) { return file_.cipher_->add(bytes, raw(out)); }

bool SealedFile::Content::end_piece(std::byte* tag) { return file_.cipher_->seal(raw(tag)); }

Result<std::unique_ptr<Aead>> open_header(Files& files, const std::string& path, const DictionaryKey& key,
                                          std::string_view magic, Bytes bound, MutableBytes text,
                                          Salt& salt) {
  std::array<std::byte, kMagicBytes> found;
  SealTag tag;
  const std::array<MutableBytes, 4> into{found, salt, tag, text};
  if (auto read = files.read(path, 0, into); !read) return read.error();
  if (as_text(found) != magic) return make_error_code(StoreError::damaged);
  auto cipher = key.cipher(magic, salt, Aead::Use::open);
  if (!open_part(*cipher, kHeaderPart, bound, text, tag)) return make_error_code(StoreError::damaged);
  return cipher;
}

bool open_part(Aead& cipher, std::uint32_t number, Bytes bound, MutableBytes text, SealTag& tag) {
  return cipher.open_whole(part_nonce(number), raw(bound), text, raw(tag.data()));
}

OpenedPieces::OpenedPieces(std::size_t bytes)
    : bytes_(bytes), content_(Slice::unfilled(bytes, memory_)), tags_(pieces_of(bytes)) {}

MutableBytes OpenedPieces::piece(std::size_t index) const {
  const std::size_t start = index * kPieceBytes;
  return {memory_ + start, std::min(kPieceBytes, bytes_ - start)};
}

void OpenedPieces::add_to(std::vector<MutableBytes>& into) {
  into.reserve(into.size() + 2 * tags_.size());
  for (std::size_t i = 0; i < tags_.size(); ++i) {
    into.push_back(tags_[i]);
    into.push_back(piece(i));
  }
}

bool OpenedPieces::open(Aead& cipher, std::uint32_t first_piece, Bytes bound) {
  for (std::size_t i = 0; i < tags_.size(); ++i)
    if (!open_part(cipher, static_cast<std::uint32_t>(first_piece + i), bound, piece(i), tags_[i]))
      return false;
  return true;
}

}  // namespace longhaul::cache
