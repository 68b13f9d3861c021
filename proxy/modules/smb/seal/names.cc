// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/names.h"

#include <algorithm>

#include "codecs/little_endian.h"

namespace longhaul::smb::seal {
namespace {

constexpr std::size_t kMostShown = 64;
constexpr char32_t kReplacement = 0xfffd;

char16_t upper_letter(char16_t c) {
  const auto in = [c](unsigned from, unsigned to) { return c >= from && c <= to; };
  const auto less = [c](unsigned by) { return static_cast<char16_t>(c - by); };
  const bool odd = c & 1;
  if (in('a', 'z')) return less(0x20);
  if (c < 0xe0) return c;
  if (in(0xe0, 0xfe)) return c == 0xf7 ? c : less(0x20);
  if (c == 0xff) return 0x178;
  // Latin Extended-A: pairs, in which the capital comes first.
  if (in(0x100, 0x12f) || in(0x132, 0x137) || in(0x14a, 0x177)) return odd ? less(1) : c;
  if (in(0x139, 0x148) || in(0x179, 0x17e)) return odd ? c : less(1);
  if (c == 0x3ac) return 0x386;
  if (in(0x3ad, 0x3af)) return less(0x25);
  if (in(0x3b1, 0x3cb) && c != 0x3c2) return less(0x20);
  if (c == 0x3cc) return 0x38c;
  if (in(0x3cd, 0x3ce)) return less(0x3f);
  if (in(0x430, 0x44f)) return less(0x20);
  if (in(0x450, 0x45f)) return less(0x50);
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) return put(0xc0 | c >> 6), put(0x80 | (c & 0x3f));
  if (c < 0x10000) return put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
  put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
}

// The character at `at`; advances `at`.
char32_t next_utf8(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first >= 0xf5 || at + static_cast<std::size_t>(more) > text.size()) return kReplacement;
  char32_t c = first & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(at + static_cast<std::size_t>(i)) & 0xc0) != 0x80) return kReplacement;
    c = c << 6 | (byte(at + static_cast<std::size_t>(i)) & 0x3f);
  }
  const char32_t least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
  if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return kReplacement;
  at += static_cast<std::size_t>(more);
  return c;
}

}  // namespace

std::u16string from_wire(Bytes utf16le) {
  std::u16string text;
  text.reserve(utf16le.size() / 2);
  for (std::size_t at = 0; at + 2 <= utf16le.size(); at += 2) text.push_back(load_le<char16_t>(utf16le, at));
  return text;
}

std::u16string from_utf8(std::string_view text) {
  std::u16string result;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_utf8(text, at);
    if (c < 0x10000) {
      result.push_back(static_cast<char16_t>(c));
    } else {
      result.push_back(static_cast<char16_t>(0xd800 + ((c - 0x10000) >> 10)));
      result.push_back(static_cast<char16_t>(0xdc00 + ((c - 0x10000) & 0x3ff)));
    }
  }
  return result;
}

std::u16string upper(std::u16string_view text) {
  std::u16string result(text);
  std::ranges::transform(result, result.begin(), upper_letter);
  return result;
}

std::string printable_name(std::u16string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size() && at < kMostShown; ++at) {
    char32_t c = text[at];
    const bool pair = c >= 0xd800 && c < 0xdc00 && at + 1 < text.size() && (text[at + 1] & 0xfc00) == 0xdc00;
    if (pair) c = 0x10000 + ((c & 0x3ff) << 10) + (text[++at] & 0x3ffu);
    const bool hidden = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
                        (c >= 0x2028 && c < 0x202f) || (c >= 0x2066 && c < 0x206a);
    append_utf8(shown, hidden ? '?' : c);
  }
  return shown;
}

std::string printable_name(std::string_view text) {
  return printable_name(from_utf8(text.substr(0, 4 * kMostShown)));
}

}  // namespace longhaul::smb::seal
