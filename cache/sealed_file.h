// SPDX-License-Identifier: Apache-2.0
// The common format of the files of both stores (FORMAT.md, sections 3, 4 and 12): magic and salt in the
// clear, a sealed header, and content in sealed pieces. segment_file.h and object_file.h define the meaning
// of header and content.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/dictionary_key.h"
#include "cache/files.h"
#include "codecs/byte_writer.h"
#include "codecs/slice.h"

namespace longhaul::cache {

inline constexpr std::size_t kPieceBytes = 64 * 1024;
inline constexpr std::size_t kMagicBytes = 8;
inline constexpr std::size_t kSaltedBytes = kMagicBytes + sizeof(Salt);  // the unencrypted part
inline constexpr std::uint32_t kHeaderPart = 0;                          // the number of that part

// Size in the file: salt, header and its tag.
constexpr std::size_t sealed_header_bytes(std::size_t text) { return kSaltedBytes + kAeadTagBytes + text; }
constexpr std::size_t pieces_of(std::size_t content) { return (content + kPieceBytes - 1) / kPieceBytes; }
// Size in the file: all pieces with their tags.
constexpr std::size_t sealed_content_bytes(std::size_t content) {
  return content + pieces_of(content) * kAeadTagBytes;
}

// Seals the parts of a file to be written, in any order of their numbers, each number once.
class SealedFile {
 public:
  SealedFile(const DictionaryKey& key, std::string_view magic, const Salt& salt)
      : magic_(magic), salt_(salt), cipher_(key.cipher(magic, salt, Aead::Use::seal)) {}

  // All functions append, and return false if OpenSSL failed. `bound` is authenticated with the part.
  bool header(Bytes text, Bytes bound, Buffer& out);
  bool part(std::uint32_t number, Bytes text, Bytes bound, Buffer& out);

  // Seals the content, a few pieces at a time, which stay in the processor's cache until they are written.
  class Content {
   public:
    // The first piece has this number. `bound` and `parts` outlive this object.
    Content(SealedFile& file, std::uint32_t first_piece, Bytes bound, std::span<const Slice> parts);
    bool is_done() const { return left_ == 0; }
    // `seen` receives all bytes in order.
    template <class Seen>
    bool next(Buffer& out, Seen seen) {
      const std::size_t most = kAtOnce * (kAeadTagBytes + kPieceBytes), begin = out.size();
      out.resize(begin + most);
      std::size_t filled = begin;
      for (std::size_t i = 0; i < kAtOnce && left_ > 0; ++i) {
        const std::size_t size = std::min(left_, kPieceBytes);
        if (!start_piece()) return false;
        for (std::size_t done = 0; done < size;) {
          const Bytes taken = take(size - done);
          seen(taken);
          if (!add(taken, out.data() + filled + kAeadTagBytes + done)) return false;
          done += taken.size();
        }
        if (!end_piece(out.data() + filled)) return false;
        filled += kAeadTagBytes + size;
        left_ -= size;
      }
      out.resize(filled);
      return true;
    }

   private:
    static constexpr std::size_t kAtOnce = 4;

    bool start_piece();
    Bytes take(std::size_t most);
    bool add(Bytes bytes, std::byte* out);
    bool end_piece(std::byte* tag);

    SealedFile& file_;
    std::uint32_t piece_;
    Bytes bound_;
    std::span<const Slice> parts_;  // starting with the one that is being encrypted
    std::size_t taken_ = 0;         // of the first one
    std::size_t left_ = 0;          // of all parts
  };

 private:
  std::string_view magic_;
  const Salt& salt_;
  std::unique_ptr<Aead> cipher_;
};

// Reads the header's text, and the salt. The result decrypts the other parts. Returns an error if the file is
// too short, of another kind, damaged, or encrypted with another key.
Result<std::unique_ptr<Aead>> open_header(Files& files, const std::string& path, const DictionaryKey& key,
                                          std::string_view magic, Bytes bound, MutableBytes text, Salt& salt);
// Decrypts one part in memory, in place.
using SealTag = std::array<std::byte, kAeadTagBytes>;
[[nodiscard]] bool open_part(Aead& cipher, std::uint32_t number, Bytes bound, MutableBytes text,
                             SealTag& tag);

// Reads consecutive pieces.
class OpenedPieces {
 public:
  // `bytes` of content: whole pieces, except for the file's last one.
  explicit OpenedPieces(std::size_t bytes);

  // Appends the buffers for the file's bytes, in order.
  void add_to(std::vector<MutableBytes>& into);
  // To be called after they were read. Returns false if they are damaged, or of another file or position.
  [[nodiscard]] bool open(Aead& cipher, std::uint32_t first_piece, Bytes bound);
  Slice take() { return std::move(content_); }

 private:
  MutableBytes piece(std::size_t index) const;

  std::size_t bytes_;
  std::byte* memory_ = nullptr;
  Slice content_;
  std::vector<SealTag> tags_;
};

}  // namespace longhaul::cache
