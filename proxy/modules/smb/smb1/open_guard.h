// SPDX-License-Identifier: Apache-2.0
// Decides which open or rename of an SMB1 connection is answered instead of passed on because promised writes
// of its file were lost. The server never receives it: an unsigned SMB1 connection does not number messages.
// If the connection is signed, it is reset, which has to inform the client.
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

  // Outputs a replacement for the frame, or has the connection reset. Returns false, without output, if the
  // frame cannot be parsed.
  bool request(const Frame& frame, Out& out);
  bool answer(const Frame& frame, Out& out);
  // Whether responses of the server will show that lost content was replaced.
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
