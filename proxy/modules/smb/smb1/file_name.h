// SPDX-License-Identifier: Apache-2.0
// A file name in a share as sent by an SMB1 client, to decide whether two requests may refer to the same
// file. In doubt the result is true; the server's files are not known here.
#pragma once
#include <string>

#include "codecs/bytes.h"
#include "proxy/modules/smb/smb1/message.h"

namespace longhaul::smb::smb1 {

struct FileName {
  std::uint16_t tid = 0;
  std::u16string path;  // ASCII letters in upper case, without a stream's name
  bool exact =
      true;  // false: another spelling may name the same file (8.3 names, letters beyond ASCII, by FID)
  bool stream = false;     // it names one of the file's named streams
  std::u16string spelled;  // the path, not folded
  bool dfs = false;        // it may begin with server and share
  // Equal except for spelling.
  bool operator==(const FileName& other) const {
    return tid == other.tid && path == other.path && exact == other.exact && stream == other.stream;
  }
};

FileName file_name(std::uint16_t tid, Bytes name, bool unicode);
inline FileName file_name(const Header& request, Bytes name) {
  FileName result = file_name(request.tid, name, request.is_unicode());
  result.dfs = request.is_dfs();
  return result;
}
bool may_be_same_file(const FileName& a, const FileName& b);

}  // namespace longhaul::smb::smb1
