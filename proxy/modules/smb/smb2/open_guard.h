// SPDX-License-Identifier: Apache-2.0
// Decides which CREATE, rename or link of an SMB2 connection is answered instead of passed on because
// promised writes of its file were lost, and how: an ECHO is sent to the server under its MessageId, so that
// no id is left unused there, and the response to the ECHO returns to the client as the request's error, with
// the credits that the server grants. Signed requests cannot be answered: then the connection is reset, which
// has to inform the client.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "codecs/keyed_hash.h"
#include "proxy/modules/guard.h"
#include "proxy/modules/promises/telling.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/share_names.h"
#include "proxy/modules/smb/smb2/compound.h"
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2 {

class OpenGuard {
 public:
  using Out = modules::Guard::Out;

  // `telling` outlives this object.
  OpenGuard(const LostWrites::Ends& ends, Telling& telling) : ends_(ends), telling_(telling) {}

  // Outputs a replacement for the frame, or has the connection reset. Returns false, without output, if the
  // frame cannot be parsed.
  bool request(const Frame& frame, Out& out);
  bool answer(const Frame& frame, Out& out);
  // Whether responses of the server must still be changed, or will show that lost content was replaced.
  bool owes() const { return !owed_.empty(); }

 private:
  struct Chain;
  enum class Verdict : std::uint8_t { passes, refused };
  // A request whose response matters.
  struct Owed {
    Header request;  // with the session and tree that it refers to
    Verdict verdict = Verdict::passes;
    // Nullopt: it is refused because the previous CREATE in its compound is.
    std::optional<LostWrites::File> file;
    LostWrites::Use use = LostWrites::Use::attributes;
  };
  using Elements = std::span<const Element>;
  // Judges the first of these elements, which are the rest of the message.
  Verdict judge(Elements elements, Chain& chain);
  Verdict judge_create(Elements elements, const Chain& chain);
  Verdict judge_new_name(const Element& element, const Chain& chain);
  void learn_opened(const Element& answer, const Owed& owed);
  bool tell_by_reset(Out& out);
  void owe(const Element& element, const Chain& chain, Owed owed);
  bool is_being_told(const LostWrites::File& file) const;
  void learn_share(const Element& answer);
  CompoundPart settled(const Element& answer, const Owed& owed);

  LostWrites::Ends ends_;
  Telling& telling_;
  ShareNames shares_;
  KeyedMap<MessageId, Owed> owed_;
  // Open files with lost writes: handles that may rename them.
  std::unordered_map<FileId, LostWrites::File, FileIdHash> opened_;
};

}  // namespace longhaul::smb::smb2
