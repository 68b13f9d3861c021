// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/hash_list.h"

#include <algorithm>
#include <charconv>

#include "proxy/modules/smb/seal/names.h"

namespace longhaul::smb::seal {
namespace {

bool read_digits(std::string_view digits, NtHash& hash) {
  if (digits.size() != 2 * hash.bytes.size()) return false;
  for (std::size_t i = 0; i < hash.bytes.size(); ++i) {
    std::uint8_t value = 0;
    const char* at = digits.data() + 2 * i;
    const auto [end, error] = std::from_chars(at, at + 2, value, 16);
    if (error != std::errc{} || end != at + 2) return false;
    hash.bytes[i] = std::byte{value};
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

config::TextResult<void> parse_hash_list(std::string_view text, const AddHash& add) {
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty() || content.front() == '#') continue;
    const std::size_t colon = content.rfind(':');
    const std::string_view name = trimmed(content.substr(0, std::min(colon, content.size())));
    const std::size_t slash = name.find('\\');
    const bool has_domain = slash != std::string_view::npos;
    const std::string_view user = has_domain ? name.substr(slash + 1) : name;
    NtHash hash;
    if (colon == std::string_view::npos || user.empty() || user.find('\\') != std::string_view::npos ||
        !read_digits(trimmed(content.substr(colon + 1)), hash))
      return config::TextError{
          "has an invalid line " + std::to_string(line) +
          ": it must be user:hash or domain\\user:hash, with a hash of 32 hexadecimal digits"};
    add(from_utf8(has_domain ? name.substr(0, slash) : std::string_view()), from_utf8(user), hash.bytes);
  }
  return {};
}

}  // namespace longhaul::smb::seal
