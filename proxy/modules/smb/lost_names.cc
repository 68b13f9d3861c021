// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/lost_names.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace longhaul::smb {
namespace {

char16_t folded(char16_t letter) {
  return letter >= u'a' && letter <= u'z' ? static_cast<char16_t>(letter - (u'a' - u'A')) : letter;
}

std::u16string folded(std::u16string_view text) {
  std::u16string result(text);
  std::ranges::transform(result, result.begin(), [](char16_t letter) { return folded(letter); });
  return result;
}

}  // namespace

std::u16string share_of(std::u16string_view unc) {
  while (unc.ends_with(u'\\')) unc.remove_suffix(1);
  if (const auto last = unc.rfind(u'\\'); last != std::u16string_view::npos) unc.remove_prefix(last + 1);
  return folded(unc);
}

// smbd treats slashes as backslashes, several as one, and resolves "." and ".."; other servers refuse those.
LostWrites::File file_named(const LostWrites::Ends& ends, std::u16string share, std::u16string_view name,
                            NameForm form) {
  std::vector<std::u16string_view> parts;
  name = name.substr(0, name.find(u':'));
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of(u"\\/"), name.size());
    const auto part = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    if (part == u"..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != u".") {
      parts.push_back(part);
    }
  }
  if (form == NameForm::dfs && parts.size() >= 2 && folded(parts[1]) == share)
    parts.erase(parts.begin(), parts.begin() + 2);
  LostWrites::File file{.ends = ends, .share = std::move(share), .path = {}};
  for (const std::u16string_view part : parts) {
    if (!file.spelled.empty()) file.spelled += u'\\';
    file.spelled += part;
  }
  file.path = folded(file.spelled);
  return file;
}

bool may_be_in(std::u16string_view name, std::u16string_view path) {
  if (name.size() < path.size()) return false;
  while (name.starts_with(u'\\')) name.remove_prefix(1);
  // Characters that file_named() would change.
  if (name.find_first_of(u"/:") != name.npos || name.starts_with(u'.') || name.find(u"\\.") != name.npos ||
      name.find(u"\\\\") != name.npos)
    return true;
  const auto begins = [&](std::u16string_view with) {
    return with.size() >= path.size() && std::equal(path.begin(), path.end(), with.begin(),
                                                    [](char16_t a, char16_t b) { return a == folded(b); });
  };
  if (begins(name)) return true;
  for (int part = 0; part < 2; ++part) {  // NameForm::dfs
    const auto end = name.find(u'\\');
    if (end == name.npos) return false;
    name.remove_prefix(end + 1);
  }
  return begins(name);
}

bool names_stream(std::u16string_view name) {
  const std::size_t colon = name.find(u':');
  return colon != std::u16string_view::npos && folded(name.substr(colon)) != u"::$DATA";
}

// [MS-SMB2] 2.2.13, [MS-CIFS] 2.2.4.64.1. GENERIC_EXECUTE reads no data, but execution does.
LostWrites::Use use_of(std::uint32_t access, std::uint32_t disposition) {
  constexpr std::uint32_t kSupersede = 0, kCreate = 2, kOverwrite = 4, kOverwriteIf = 5;
  constexpr std::uint32_t kReads = 0x0000'0001 | 0x0000'0020 | 0x8000'0000 | 0x2000'0000;
  constexpr std::uint32_t kWrites = 0x0000'0002 | 0x0000'0004 | 0x4000'0000 | 0x1000'0000 | 0x0200'0000;
  if (disposition == kSupersede || disposition == kCreate || disposition == kOverwrite ||
      disposition == kOverwriteIf)
    return LostWrites::Use::replaces;
  if (access & kWrites) return LostWrites::Use::writes;
  return access & kReads ? LostWrites::Use::reads : LostWrites::Use::attributes;
}

std::string display_name(const LostWrites::File& file) {
  const std::u16string name = file.share + u'\\' + file.path;
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    char32_t letter = name[i];
    const bool is_pair = letter >= 0xD800 && letter < 0xDC00 && i + 1 < name.size() &&
                         name[i + 1] >= 0xDC00 && name[i + 1] < 0xE000;
    if (is_pair) letter = 0x10000 + ((letter - 0xD800) << 10) + (name[++i] - 0xDC00u);
    if (letter >= 0xD800 && letter < 0xE000) letter = 0xFFFD;
    const auto put = [&](char32_t bits) { text += static_cast<char>(bits); };
    const auto follow = [&](int shift) { put(0x80 | (letter >> shift & 0x3F)); };
    if (letter < 0x80) {
      put(letter);
    } else if (letter < 0x800) {
      put(0xC0 | letter >> 6), follow(0);
    } else if (letter < 0x10000) {
      put(0xE0 | letter >> 12), follow(6), follow(0);
    } else {
      put(0xF0 | letter >> 18), follow(12), follow(6), follow(0);
    }
  }
  return text;
}

}  // namespace longhaul::smb
