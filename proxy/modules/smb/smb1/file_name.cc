// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/file_name.h"

#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

namespace {

constexpr std::size_t kMostLetters = 1024;  // longer names may match any file

}  // namespace

FileName file_name(std::uint16_t tid, Bytes name, bool unicode) {
  FileName result{.tid = tid};
  const std::size_t width = unicode ? 2 : 1;
  std::u16string stream;  // from its colon on
  for (std::size_t at = 0; at + width <= name.size(); at += width) {
    char16_t letter =
        unicode ? static_cast<char16_t>(u16_at(name, at)) : static_cast<char16_t>(u8_at(name, at));
    if (letter == 0) break;
    if (letter == u':' || !stream.empty()) {
      if (stream.size() < kMostLetters) stream.push_back(letter);
      continue;
    }
    if (result.path.size() == kMostLetters) {
      result.exact = false;
      break;
    }
    if (letter == u'/') letter = u'\\';
    if (letter == u'\\' && (result.path.empty() || result.path.back() == u'\\')) continue;
    result.spelled.push_back(letter);
    if (letter >= u'a' && letter <= u'z') letter = static_cast<char16_t>(letter - (u'a' - u'A'));
    if (letter > 0x7E || letter == u'~') result.exact = false;
    result.path.push_back(letter);
  }
  result.stream = names_stream(stream);
  if (result.path.empty()) result.exact = false;
  return result;
}

// Two trees may share the same folder, or one may lie inside the other.
bool may_be_same_file(const FileName& a, const FileName& b) {
  return !a.exact || !b.exact || a.tid != b.tid || a.path == b.path;
}

}  // namespace longhaul::smb::smb1
