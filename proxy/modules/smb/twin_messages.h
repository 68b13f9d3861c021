// SPDX-License-Identifier: Apache-2.0
// What the two halves of an SMB connection tell each other between its frames, for SMB1 and SMB2 alike.
// Small: data never travel inside a message but behind it, as raw bytes of the stream. What follows from a
// message is the halves'.
#pragma once
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <variant>

#include "codecs/byte_writer.h"
#include "codecs/result.h"
#include "codecs/slice.h"

namespace longhaul::smb {

// An open file of this connection, named as the client names it. SMB2: its FileId (16 bytes), session and
// tree; SMB1: its FID (2 bytes), UID as session, TID as tree.
struct OpenKey {
  std::uint64_t session = 0;
  std::uint32_t tree = 0;
  std::array<std::byte, 16> id{};  // zero behind its size
  bool operator==(const OpenKey&) const = default;
  auto operator<=>(const OpenKey&) const = default;
};
struct OpenKeyHash {
  std::size_t operator()(const OpenKey& key) const;
};

// A request's own number: SMB2 MessageId; SMB1 PID << 16 | MID.
using MessageNumber = std::uint64_t;

// When data were asked from the server, or a READ from us: how often each half had dropped what was known of
// the open. Data of one stamp answer only READs of the same stamp.
struct Stamp {
  std::uint32_t near = 0, far = 0;
  bool operator==(const Stamp&) const = default;
};

// ---- read-ahead

// far -> near: `length` raw bytes follow, the file's bytes at `offset`.
struct Ahead {
  OpenKey open;
  Stamp stamp;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;                  // attached
  std::optional<std::uint64_t> end_of_file;  // the file ends there: known since a read came short
};
// near -> far: this READ was answered from what was ahead; its id is the far half's to use (as with Local).
struct Used {
  OpenKey open;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  MessageNumber message = 0;
  std::uint16_t charge = 0;
  std::uint64_t seen = 0;  // Ahead messages of this open that have come so far
};
// near -> far: the frame behind this is a READ of which [missing_from, missing_to) is not here. Of this open
// `seen` Ahead messages have come so far. The far half swallows the frame if all that is missing comes in
// later ones.
struct Asked {
  OpenKey open;
  Stamp stamp;
  MessageNumber message = 0;
  std::uint64_t missing_from = 0, missing_to = 0;
  std::uint64_t seen = 0;
};
// far -> near: this READ that was asked has gone to the server after all: only a frame answers it. Told
// before an Ahead that might complete it.
struct Forwarded {
  MessageNumber message = 0;
};
// Either way: what is known of this open's data is void; `epoch` is the teller's own count from here on.
struct Drop {
  OpenKey open;
  std::uint32_t epoch = 0;
};

// near -> far: what is ahead of the client on this connection, unread, is to be no more than this. Until it
// is said: what the far half likes.
struct Allowance {
  std::uint64_t bytes = 0;
};

// ---- write-behind

// near -> far: the frame behind this is a WRITE, or a CLOSE, that has been or will be answered by the near
// half; Kept is owed for it, in the place of its answer.
struct Promised {
  OpenKey open;
  MessageNumber message = 0;
};
// far -> near: the server's answer to it.
struct Kept {
  MessageNumber message = 0;
  std::uint32_t status = 0;
  std::uint32_t written = 0;
  std::uint16_t credits = 0;  // that the server granted with it
};

// far -> near: how much may still be promised to a tree's disk (disk_room.h).
struct Room {
  std::uint64_t session = 0;
  std::uint32_t tree = 0;
  std::uint64_t available_bytes = 0;
  std::uint64_t counted_bytes = 0;
};

// ---- promises, should the near half fail

// near -> far, before its first CREATE: the number of this near daemon, which remembers what it promised for
// as long as it runs (lost_writes.h).
struct Remembers {
  std::uint64_t near = 0;
};
// near -> far: of what was promised through this open nothing is outstanding, and each failure was told. No
// more is promised before the server has answered a WRITE through it that was not promised.
struct Settled {
  OpenKey open;
};
// far -> near: whether the server of this session has other addresses than the one that this connection goes
// to. Told where the session may use several connections, and again when the client may have learnt of more.
struct Paths {
  std::uint64_t session = 0;
  bool others = false;
};

// ---- oplocks

// far -> near: this open's oplock was asked on the client's behalf, with what caching it came.
struct Held {
  OpenKey open;
  std::uint8_t level = 0;  // as the server's answer has it
};
// far -> near: the server breaks an oplock that the client does not know of, to `level`. Broken is awaited.
struct Break {
  OpenKey open;
  std::uint8_t level = 0;
};
// near -> far: everything promised under it lies before this message.
struct Broken {
  OpenKey open;
};

// far -> near: what was known of this open (a folder's listing, too) may have been changed by others, and
// holds no more if it was known before this message. `watched`: the next change is told as well.
struct Watched {
  OpenKey open;
  bool watched = false;
};

// ---- answers made ahead, and ids

// far -> near: a request that the client may be about to make, and the server's answer. Both without headers,
// and the request without its file. A status of `pending`: there is none, ask yourself.
struct Answer {
  OpenKey open;
  std::uint16_t command = 0;
  std::uint32_t status = 0;
  Slice request;
  std::uint32_t response_bytes = 0;  // attached
};
// near -> far: if the CREATE with this id, right behind, opens a file, ask this about it too and push the
// Answer; who asks the near half waits for it.
struct Expect {
  MessageNumber message = 0;
  std::uint16_t command = 0;
  Slice request;
};
// near -> far: the frame behind this asks for (a part of) a directory's listing: fetch the rest to its end,
// as Answers whose request is this id (8 bytes). The client has had `served` entries before, which the server
// told by itself. `all`: the frame starts the listing afresh, its own answer
// comes as an Answer too, and the first `served` entries that were listed before are left out. Without an
// open: the frame is a compound that opens the directory, too, and this is the id of its QUERY_DIRECTORY.
struct Enumerate {
  OpenKey open;
  MessageNumber message = 0;
  bool all = false;
  std::uint64_t served = 0;
  std::uint8_t info_class = 0;
  Slice pattern;  // as the request has it
};
// near -> far: so many bytes of this listing have left the near half; the far half fetches a bounded part
// ahead.
struct More {
  OpenKey open;
  std::uint64_t bytes = 0;
};
// near -> far: this request was answered here; its id and those behind it were never used at the server.
struct Local {
  MessageNumber message = 0;
  std::uint16_t charge = 0;
};

// ---- opens made ahead (SMB2)

// far -> near: the server has opened a file that the client has not asked for, on the client's behalf and
// under an oplock that keeps others waiting. Whoever asks for just that may be given it. What is told of the
// open afterwards is for who is given it. Attached: the body of the answer that the client is to get.
struct Offer {
  std::uint64_t number = 0;  // never used again, unlike the open's own
  OpenKey open;
  Slice request;                     // what it answers
  Slice questions;                   // that are asked about it too; each is awaited as an Answer
  std::uint32_t response_bytes = 0;  // attached
};
// far -> near: it is not to be given to anybody any more. GaveUp is awaited, unless Took is on its way.
struct Revoke {
  std::uint64_t number = 0;
};
// near -> far: the client has been given it. A Local follows.
struct Took {
  std::uint64_t number = 0;
};
// near -> far: the client has not got it, and will not get it.
struct GaveUp {
  std::uint64_t number = 0;
};

// near -> far: an open that was answered here, of a file that is open at the server anyway, is needed there
// now: open it. What comes behind this waits until that is done, and may name it.
struct MakeReal {
  OpenKey open;   // as the client knows it
  Slice request;  // its CREATE, header included
};

using TwinMessage = std::variant<Ahead, Used, Asked, Forwarded, Drop, Promised, Kept, Room, Held, Break,
                                 Broken, Answer, Expect, Enumerate, More, Local, Offer, Revoke, Took, GaveUp,
                                 MakeReal, Allowance, Remembers, Settled, Watched, Paths>;

enum class TwinError { unknown_message = 1, malformed_message };
const boost::system::error_category& twin_error_category();
inline boost::system::error_code make_error_code(TwinError error) {
  return {static_cast<int>(error), twin_error_category()};
}

Slice encode(const TwinMessage& message);
// Copies what it keeps. An error means that the twin is not one of ours: reset the flow.
Result<TwinMessage> decode(Bytes message);

// How many raw bytes of the stream belong to the message, right behind it. Bounded: at most
// kMaxAttachedBytes.
inline constexpr std::uint32_t kMaxAttachedBytes = 1 << 20;
std::uint32_t attached_bytes(const TwinMessage& message);

}  // namespace longhaul::smb

template <>
struct boost::system::is_error_code_enum<longhaul::smb::TwinError> : std::true_type {};
