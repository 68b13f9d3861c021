// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/references.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <string>

#include "codecs/work.h"

namespace longhaul::dedup {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "references"; }
  std::string message(int error) const override {
    switch (static_cast<ReferenceError>(error)) {
      case ReferenceError::malformed:
        return "malformed references";
      case ReferenceError::not_held:
        return "reference to history that is not stored";
    }
    return "unknown";
  }
};

// A token's first byte: three bits for the number of bytes of the change of distance, five for the literals
// before the copy.
constexpr unsigned kLiteralBits = 5;
constexpr std::uint64_t kManyLiterals = (1u << kLiteralBits) - 1;  // and the rest as varint
constexpr unsigned kMaxDistanceBytes = 5;

std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 ? ~std::uint64_t{0} : 0);
}
std::uint64_t unzigzag(std::uint64_t value) { return value >> 1 ^ (value & 1 ? ~std::uint64_t{0} : 0); }

// Tokens are written to reserved memory: at most 1 + 4 + 4 + 5 bytes for each.
constexpr std::size_t kMaxTokenBytes = 14;

std::byte* put_varint(std::byte* at, std::uint64_t value) {
  const std::size_t size = varint_size(value);
  value |= std::uint64_t(std::countr_zero(size)) << (8 * size - 2);
  for (std::size_t i = size; i-- > 0;) *at++ = std::byte(value >> 8 * i & 0xff);
  return at;
}

// Reads tokens without a check for each byte while enough of them are left; returns false near the end.
class TokenReader {
 public:
  explicit TokenReader(Bytes tokens) : at_(tokens.data()), end_(at_ + tokens.size()) {}

  bool done() const { return at_ == end_; }
  bool fixed(std::size_t size, std::uint64_t& value) {
    if (static_cast<std::size_t>(end_ - at_) < size) return false;
    value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8 | std::to_integer<std::uint64_t>(*at_++);
    return true;
  }
  bool varint(std::uint64_t& value) {
    if (done()) return false;
    const std::size_t size = std::size_t{1} << (std::to_integer<unsigned>(*at_) >> 6);
    if (!fixed(size, value)) return false;
    value &= ~std::uint64_t{0} >> (64 - 8 * size + 2);
    return true;
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

}  // namespace

const boost::system::error_category& reference_category() {
  static const Category category;
  return category;
}

void encode_references(std::uint64_t offset, Bytes plain, const std::vector<Copy>& copies, Buffer& out) {
  // The tokens are preceded by their length: they are written after a gap for the longest head, then moved
  // forward to the head.
  const std::size_t start = out.size();
  constexpr std::size_t kGap = 4;
  std::size_t literals = plain.size();
  for (const Copy& copy : copies) literals -= copy.length;
  out.resize(start + kGap + copies.size() * kMaxTokenBytes + literals);
  std::byte* const head = out.data() + start;
  std::byte* at = head + kGap;
  std::uint64_t distance = 0;
  std::size_t done = 0;
  for (const Copy& copy : copies) {
    assert(copy.position >= done && copy.length >= kMinCopy && copy.position + copy.length <= plain.size());
    assert(copy.source + copy.length <= offset);
    const std::uint64_t run = copy.position - done;
    const std::uint64_t now = offset + copy.position - copy.source;
    const std::uint64_t change = zigzag(now - distance);
    const auto bytes = static_cast<unsigned>(std::bit_width(change) + 7) / 8;
    assert(bytes <= kMaxDistanceBytes);
    *at++ = std::byte(bytes << kLiteralBits | std::min(run, kManyLiterals));
    if (run >= kManyLiterals) at = put_varint(at, run - kManyLiterals);
    at = put_varint(at, copy.length - kMinCopy);
    for (unsigned i = bytes; i-- > 0;) *at++ = std::byte(change >> 8 * i & 0xff);
    distance = now;
    done = copy.position + copy.length;
  }
  const std::size_t token_bytes = static_cast<std::size_t>(at - head) - kGap;
  const std::size_t shift = kGap - varint_size(token_bytes);
  put_varint(head, token_bytes);
  if (shift) std::memmove(head + kGap - shift, head + kGap, token_bytes);
  at -= shift;
  done = 0;
  for (const Copy& copy : copies) {
    std::memcpy(at, plain.data() + done, copy.position - done);
    at += copy.position - done;
    done = copy.position + copy.length;
  }
  if (done < plain.size()) std::memcpy(at, plain.data() + done, plain.size() - done);
  at += plain.size() - done;
  out.resize(static_cast<std::size_t>(at - out.data()));
}

Result<Bytes> parse_references(Bytes encoded, std::uint64_t offset, std::size_t plain_bytes,
                               std::vector<Copy>& copies) {
  copies.clear();
  TokenReader head(encoded);
  std::uint64_t token_bytes = 0;
  if (!head.varint(token_bytes)) return ReferenceError::malformed;
  encoded = encoded.subspan(std::size_t{1} << (std::to_integer<unsigned>(encoded[0]) >> 6));
  if (token_bytes > encoded.size()) return ReferenceError::malformed;
  const Bytes literals = encoded.subspan(static_cast<std::size_t>(token_bytes));
  if (literals.size() > plain_bytes) return ReferenceError::malformed;

  TokenReader tokens(encoded.first(static_cast<std::size_t>(token_bytes)));
  std::uint64_t distance = 0, position = 0, copied = 0;
  while (!tokens.done()) {
    std::uint64_t first = 0, run = 0, length = 0, change = 0;
    tokens.fixed(1, first);
    run = first & kManyLiterals;
    if (run == kManyLiterals) {
      if (!tokens.varint(run)) return ReferenceError::malformed;
      if (run > plain_bytes) return ReferenceError::malformed;
      run += kManyLiterals;
    }
    const auto change_bytes = static_cast<std::size_t>(first >> kLiteralBits);
    if (change_bytes > kMaxDistanceBytes) return ReferenceError::malformed;
    if (!tokens.varint(length) || !tokens.fixed(change_bytes, change)) return ReferenceError::malformed;
    // Every term is below 2^62, so that no sum wraps around.
    length += kMinCopy;
    if (run > plain_bytes - position || length > plain_bytes - position - run)
      return ReferenceError::malformed;
    position += run;
    distance += unzigzag(change);
    // The whole source lies before the block.
    const std::uint64_t here = offset + position;
    if (distance > here || length + position > distance) return ReferenceError::malformed;
    copies.push_back(
        {static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(length), here - distance});
    position += length;
    copied += length;
  }
  if (literals.size() != plain_bytes - copied) return ReferenceError::malformed;
  return literals;
}

namespace {

// Source and destination are not in the cache: the processor's own prefetch is too short for that, and memcpy
// alone is a sixth slower.
void copy_from_history(std::byte* to, const std::byte* from, std::size_t size) {
  constexpr std::size_t kLine = 64, kPiece = 4 * kLine, kAhead = 1024;
  std::size_t done = 0;
  for (; size - done >= kAhead + kPiece; done += kPiece) {
    for (std::size_t line = done + kAhead; line < done + kAhead + kPiece; line += kLine) {
      __builtin_prefetch(from + line);
      __builtin_prefetch(to + line, 1);
    }
    std::memcpy(to + done, from + done, kPiece);
  }
  std::memcpy(to + done, from + done, size - done);
}

}  // namespace

Result<void> restore_block(const HistoryRing& ring, const std::vector<Copy>& copies, Bytes literals,
                           MutableBytes plain) {
  for (const Copy& copy : copies)
    if (!ring.holds(copy.source, copy.length)) return ReferenceError::not_held;
  std::size_t done = 0;
  const std::byte* literal = literals.data();
  for (const Copy& copy : copies) {
    const std::size_t run = copy.position - done;
    if (run) std::memcpy(plain.data() + done, literal, run);
    literal += run;
    copy_from_history(plain.data() + copy.position, ring.read(copy.source, copy.length).data(), copy.length);
    done = copy.position + copy.length;
  }
  if (done < plain.size()) std::memcpy(plain.data() + done, literal, plain.size() - done);
  return {};
}

Result<void> decode_references(const HistoryRing& ring, Bytes encoded, std::uint64_t offset,
                               MutableBytes plain) {
  // One per thread: an idle peer stores nothing for its next block.
  thread_local std::vector<Copy> copies;
  auto literals = parse_references(encoded, offset, plain.size(), copies);
  // Each copy may come from another part of the memory.
  constexpr std::uint64_t kWorkPerCopy = 50;
  count_work(kWorkPerCopy * copies.size());
  if (!literals) return literals.error();
  return restore_block(ring, copies, *literals, plain);
}

}  // namespace longhaul::dedup
