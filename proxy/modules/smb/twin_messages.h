// SPDX-License-Identifier: Apache-2.0
// The messages of the two halves of an SMB connection between its frames, for SMB1 and SMB2: the module kit's
// messages (ahead/messages.h, promises/messages.h) and those about oplocks, opens and responses. Data follows
// a message as raw bytes of the stream. The halves implement their effects.
#pragma once
#include <cstdint>
#include <optional>
#include <tuple>
#include <variant>

#include "codecs/result.h"
#include "codecs/slice.h"
#include "proxy/modules/ahead/messages.h"
#include "proxy/modules/promises/messages.h"
#include "proxy/modules/twin/codec.h"
#include "proxy/modules/twin/open_key.h"

namespace longhaul::smb {

// The module kit's names are SMB's, too.
using namespace ahead;
using namespace promises;

// SMB2: FileId (16 bytes), session and tree; SMB1: FID (2 bytes), UID as session, TID as tree.
using twin::OpenKey;
using twin::OpenKeyHash;
// SMB2: MessageId; SMB1: PID << 16 | MID.
using twin::MessageNumber;
using twin::Stamp;

// far -> near: whether the server of this session has addresses other than the one of this connection. Sent
// if the session may use several connections, and again when the client may have learnt further ones.
struct Paths {
  std::uint64_t session = 0;
  bool others = false;
  static constexpr std::tuple kFields{&Paths::session, &Paths::others};
};

// ---- oplocks

// far -> near: this open's oplock was requested on the client's behalf, and granted with this caching.
struct Held {
  OpenKey open;
  std::uint8_t level = 0;  // as in the server's response
  static constexpr std::tuple kFields{&Held::open, &Held::level};
};
// far -> near: the server breaks an oplock that is hidden from the client, to `level`. Broken must follow.
struct Break {
  OpenKey open;
  std::uint8_t level = 0;
  static constexpr std::tuple kFields{&Break::open, &Break::level};
};
// near -> far: all promises under the oplock precede this message.
struct Broken {
  OpenKey open;
  static constexpr std::tuple kFields{&Broken::open};
};

// ---- responses made ahead, and ids

// far -> near: a request that the client may be about to send, and the server's response. Both without
// headers, and the request without its file. A status of `pending`: there is none, query the server.
struct Answer {
  OpenKey open;
  std::uint16_t command = 0;
  std::uint32_t status = 0;
  Slice request;
  std::uint32_t response_bytes = 0;  // attached
  std::uint32_t attached_bytes() const { return response_bytes; }
  static constexpr std::tuple kFields{&Answer::open, &Answer::command, &Answer::status, &Answer::request,
                                      &Answer::response_bytes};
};
// near -> far: if the CREATE with this id, in the next frame, opens a file, send this query about it too and
// push the Answer; a client with that query waits for it at the near half.
struct Expect {
  MessageNumber message{};
  std::uint16_t command = 0;
  Slice request;
  static constexpr std::tuple kFields{&Expect::message, &Expect::command, &Expect::request};
};
// near -> far: the next frame requests (a part of) a directory's listing: fetch the rest to its end, as
// Answers whose request is this id (8 bytes). The client has received `served` entries before, from the
// server itself. `all`: the frame restarts the listing, its own response is sent as an Answer too, and the
// first `served` entries of the earlier listing are omitted. Without an open: the frame is a compound that
// opens the directory, too, and this is the id of its QUERY_DIRECTORY.
struct Enumerate {
  OpenKey open;
  MessageNumber message{};
  bool all = false;
  std::uint64_t served = 0;
  std::uint8_t info_class = 0;
  Slice pattern;  // as in the request
  static constexpr std::tuple kFields{&Enumerate::open, &Enumerate::message, &Enumerate::all,
                                      &Enumerate::served, &Enumerate::info_class, &Enumerate::pattern};
};
// near -> far: how many bytes of this listing the near half has used; the far half fetches a limited part
// ahead.
struct More {
  OpenKey open;
  std::uint64_t bytes = 0;
  static constexpr std::tuple kFields{&More::open, &More::bytes};
};
// near -> far: this request was answered here; its id and the following ones were never used at the server.
struct Local {
  MessageNumber message{};
  std::uint16_t charge = 0;
  static constexpr std::tuple kFields{&Local::message, &Local::charge};
};

// ---- opens made ahead (SMB2)

// far -> near: the server has opened a file that the client has not requested, on the client's behalf and
// under an oplock that makes other clients wait. It may be used to answer exactly that request. Later
// messages about the open are for the client that received it. If the request is a look (smb2/look.h), no
// client receives the open, and the Answers about it answer the look. Attached: the body of the response for
// the client.
struct Offer {
  std::uint64_t number = 0;  // never reused, unlike the open's own
  OpenKey open;
  Slice request;                     // the request that it answers
  Slice questions;                   // queries that are sent about it too; an Answer follows for each
  std::uint32_t response_bytes = 0;  // attached
  std::uint32_t attached_bytes() const { return response_bytes; }
  static constexpr std::tuple kFields{&Offer::number, &Offer::open, &Offer::request, &Offer::questions,
                                      &Offer::response_bytes};
};
// far -> near: no client may receive it any more. GaveUp must follow, unless it or Took was sent before.
struct Revoke {
  std::uint64_t number = 0;
  static constexpr std::tuple kFields{&Revoke::number};
};
// near -> far: the client has received it, or its look was answered. A Local follows for each of its
// requests.
struct Took {
  std::uint64_t number = 0;
  static constexpr std::tuple kFields{&Took::number};
};
// near -> far: the client has not received it, and will not.
struct GaveUp {
  std::uint64_t number = 0;
  static constexpr std::tuple kFields{&GaveUp::number};
};

// near -> far: an open that was answered locally, of a file that is already open at the server, is now needed
// there: open it. Later frames and messages wait until that is done, and may name it.
struct MakeReal {
  OpenKey open;   // with the client's id
  Slice request;  // its CREATE, including the header
  static constexpr std::tuple kFields{&MakeReal::open, &MakeReal::request};
};

// ---- signatures and encryption handled by the halves (seal/)

// far -> near, before the response to NEGOTIATE: the far side has keys of this server, so announced
// signatures and encryption are no reason to step aside.
struct SealOffered {
  static constexpr std::tuple<> kFields{};
};
// far -> near, before the response that begins this session: the keys of the client's leg. Numbers as in
// seal/agreement.h. For SMB1: the one key of both legs, and instead of a session the request that the
// response belongs to. The keys are in this message alone, in memory and on the link.
inline constexpr std::uint16_t kDialectOfSmb1 = 0;
struct SealKeys {
  std::uint64_t session = 0;
  std::uint16_t dialect = 0, signing = 0, cipher = 0;
  bool must_sign = false;
  Slice signing_key, to_server, to_client;
  Slice detail;  // Module::detail()
  static constexpr std::tuple kFields{&SealKeys::session,     &SealKeys::dialect,   &SealKeys::signing,
                                      &SealKeys::cipher,      &SealKeys::must_sign, &SealKeys::signing_key,
                                      &SealKeys::to_server,   &SealKeys::to_client, &SealKeys::detail};
};
// far -> near: a session begins whose key is not known, so it passes unchanged; with the reason's code.
struct Unsealed {
  Slice reason;
  static constexpr std::tuple kFields{&Unsealed::reason};
};
// far -> near: the server has refused a login, for this reason; no session has begun yet.
struct LoginRefused {
  Slice reason;
  static constexpr std::tuple kFields{&LoginRefused::reason};
};

using TwinMessage =
    std::variant<Ahead, Used, Asked, Forwarded, Drop, Promised, Kept, Room, Held, Break, Broken, Answer,
                 Expect, Enumerate, More, Local, Offer, Revoke, Took, GaveUp, MakeReal, Allowance, Remembers,
                 Settled, Watched, Paths, Marked, SealOffered, SealKeys, Unsealed, LoginRefused, LossRead>;

Slice encode(const TwinMessage& message);
// An error means that the twin is another program: reset the flow.
Result<TwinMessage> decode(Bytes message);
using twin::attached_bytes;
using twin::kMaxAttachedBytes;

}  // namespace longhaul::smb
