// SPDX-License-Identifier: Apache-2.0
// Which open or rename of an SMB1 connection is answered instead of the server because promised writes of its
// file were lost. The server never sees it: an unsigned SMB1 connection counts no messages. Where it is
// signed the connection is reset, which has to tell the client.
#pragma once
#include <optional>
#include <string>

#include "codecs/keyed_hash.h"
#include "proxy/modules/guard.h"
#include "proxy/modules/promises/telling.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/share_names.h"
#include "proxy/modules/smb/smb1/lost_files.h"

namespace longhaul::smb::smb1 {

class OpenGuard {
 public:
  using Out = modules::Guard::Out;

  // `telling` outlives this object.
  OpenGuard(const LostWrites::Ends& ends, Telling& telling) : ends_(ends), telling_(telling) {}

  // Outputs a replacement for the frame, or has the connection reset. False: it cannot be parsed, and no
  // output was made.
  bool request(const Frame& frame, Out& out);
  bool answer(const Frame& frame, Out& out);
  // Answers of the server will show whether lost content has been replaced.
  bool owes() const { return !replacing_.empty(); }

 private:
  enum class Verdict : std::uint8_t { passes, refused };
  Verdict judge(const Message& message, Out& out);

  LostWrites::Ends ends_;
  Telling& telling_;
  ShareNames shares_;
  // Opens that replace the file's content, if they succeed.
  KeyedMap<MessageNumber, LostWrites::File> replacing_;
};

}  // namespace longhaul::smb::smb1
