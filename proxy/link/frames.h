// SPDX-License-Identifier: Apache-2.0
// The frames between the two sessions (PROTOCOL.md, section 3): parses and writes them, without state.
// hello_frame.h has the first frame of each carrier, records.h the bytes inside a STREAM frame.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "codecs/byte_reader.h"
#include "codecs/byte_writer.h"
#include "proxy/link/hello_frame.h"
#include "proxy/link/types.h"

namespace longhaul::link {

inline constexpr std::size_t kMaxStreamPayload = 64 * 1024;
inline constexpr std::size_t kMaxFrameBody = kMaxStreamPayload + 64;

enum class FrameType : std::uint8_t {
  hello = 1,
  stream = 2,
  ack = 3,
  credit = 4,
  credit_return = 5,
  reset = 6,
  reset_done = 7,
  ping = 8,
  pong = 9,
  close = 10,
  open_credit = 11,
};

struct StreamFrame {
  StreamId stream;
  StreamOffset offset;
  Bytes payload;
};
// Everything in the stream before `offset` has arrived and was parsed.
struct AckFrame {
  struct Entry {
    StreamId stream;
    StreamOffset offset;
  };
  std::vector<Entry> entries;
};
// Total plain bytes of the stream that the receiver of this frame may send. A later generation replaces an
// earlier one and may be lower; then CREDIT_RETURN reports the limit in force.
struct CreditFrame {
  struct Entry {
    StreamId stream;
    std::uint64_t generation;
    std::uint64_t limit;
  };
  std::vector<Entry> entries;
};
struct CreditReturnFrame {
  StreamId stream;
  std::uint64_t generation;
  std::uint64_t limit;
};
// `open_credit`: the part of the open credit that the stream's OPEN used; it counts as used even if the OPEN
// never arrives. Zero from the side that did not open the stream.
struct ResetFrame {
  StreamId stream;
  ResetCode code;
  std::uint64_t open_credit = 0;
};
struct ResetDoneFrame {
  StreamId stream;
};
struct PingFrame {
  std::uint64_t number;
};
struct PongFrame {
  std::uint64_t number;
};
enum class CloseCode : std::uint8_t {
  shutting_down = 0,
  duplicate = 1,
  busy = 2,
  protocol_error = 3,
  refused = 4
};
struct CloseFrame {
  CloseCode code;
  std::string text;
};  // text for the log, at most 256 bytes
// Initial credit of streams opened by the receiver of this frame: `floor` plain bytes each, and in addition
// `limit` plain bytes for all of them together since the session began.
struct OpenCreditFrame {
  std::uint64_t limit;
  std::uint64_t floor;
};

using Frame = std::variant<HelloFrame, StreamFrame, AckFrame, CreditFrame, CreditReturnFrame, ResetFrame,
                           ResetDoneFrame, PingFrame, PongFrame, CloseFrame, OpenCreditFrame>;

struct ParsedFrame {
  std::optional<Frame> frame;  // no value: a type that this version does not know, to be skipped
  std::size_t consumed = 0;
};

// An error means that the bytes can never become valid; nullopt means that more bytes are needed. `frame`
// borrows from `in`.
Result<std::optional<ParsedFrame>> parse_frame(Bytes in);

// A complete and valid STREAM frame, by far the most frequent one. Returns nullopt for anything else; then
// call parse_frame().
struct ParsedStreamFrame {
  StreamFrame frame;
  std::size_t consumed = 0;
};
std::optional<ParsedStreamFrame> parse_stream_frame(Bytes in);

// The length of the first frame in `in`. Returns nullopt if its length field is incomplete.
Result<std::optional<std::size_t>> frame_size(Bytes in);

void write_frame(const Frame& frame, Buffer& out);

// The head of a STREAM frame; the caller appends `payload_bytes` itself.
void write_stream_head(StreamId stream, StreamOffset offset, std::size_t payload_bytes, Buffer& out);
std::size_t stream_head_size(StreamId stream, StreamOffset offset, std::size_t payload_bytes);

}  // namespace longhaul::link
