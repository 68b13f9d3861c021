// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/frames.h"

namespace longhaul::link {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;  // clang 14 requires it

constexpr std::size_t kMaxCloseTextBytes = 256;

std::optional<Frame> read_stream(ByteReader& in) {
  auto stream = in.varint(), offset = in.varint();
  if (!stream || !offset || in.remaining() > kMaxStreamPayload) return std::nullopt;
  if (*offset > kMaxVarint - in.remaining()) return std::nullopt;
  return StreamFrame{StreamId(*stream), StreamOffset(*offset), *in.bytes(in.remaining())};
}

std::optional<Frame> read_ack(ByteReader& in) {
  AckFrame ack;
  while (in.remaining()) {
    auto stream = in.varint(), offset = in.varint();
    if (!stream || !offset) return std::nullopt;
    ack.entries.push_back({StreamId(*stream), StreamOffset(*offset)});
  }
  return ack;
}

std::optional<Frame> read_credit(ByteReader& in) {
  CreditFrame credit;
  while (in.remaining()) {
    auto stream = in.varint(), generation = in.varint(), limit = in.varint();
    if (!stream || !generation || !limit) return std::nullopt;
    credit.entries.push_back({StreamId(*stream), *generation, *limit});
  }
  return credit;
}

std::optional<Frame> read_credit_return(ByteReader& in) {
  auto stream = in.varint(), generation = in.varint(), limit = in.varint();
  if (!stream || !generation || !limit) return std::nullopt;
  return CreditReturnFrame{StreamId(*stream), *generation, *limit};
}

std::optional<Frame> read_reset(ByteReader& in) {
  auto stream = in.varint();
  auto code = in.u8();
  auto open_credit = in.varint();
  if (!stream || !code || !open_credit) return std::nullopt;
  // A code of a later version still means that the stream has ended.
  bool known = *code <= static_cast<std::uint8_t>(ResetCode::no_reader);
  return ResetFrame{StreamId(*stream), known ? static_cast<ResetCode>(*code) : ResetCode::aborted,
                    *open_credit};
}

std::optional<Frame> read_reset_done(ByteReader& in) {
  auto stream = in.varint();
  if (!stream) return std::nullopt;
  return ResetDoneFrame{StreamId(*stream)};
}

std::optional<Frame> read_close(ByteReader& in) {
  auto code = in.u8();
  auto text = in.text();
  if (!code || !text || text->size() > kMaxCloseTextBytes) return std::nullopt;
  bool known = *code <= static_cast<std::uint8_t>(CloseCode::refused);
  return CloseFrame{known ? static_cast<CloseCode>(*code) : CloseCode::shutting_down, std::string(*text)};
}

std::optional<Frame> read_open_credit(ByteReader& in) {
  auto limit = in.varint(), floor = in.varint();
  if (!limit || !floor) return std::nullopt;
  return OpenCreditFrame{*limit, *floor};
}

template <class Made>
std::optional<Frame> read_number(ByteReader& in) {
  auto number = in.varint();
  if (!number) return std::nullopt;
  return Made{*number};
}

enum class Known : bool { no, yes };

std::optional<Frame> read_body(std::uint8_t type, ByteReader& in, Known& known) {
  known = Known::yes;
  switch (static_cast<FrameType>(type)) {
    case FrameType::hello:
      return read_hello(in);
    case FrameType::stream:
      return read_stream(in);
    case FrameType::ack:
      return read_ack(in);
    case FrameType::credit:
      return read_credit(in);
    case FrameType::credit_return:
      return read_credit_return(in);
    case FrameType::reset:
      return read_reset(in);
    case FrameType::reset_done:
      return read_reset_done(in);
    case FrameType::ping:
      return read_number<PingFrame>(in);
    case FrameType::pong:
      return read_number<PongFrame>(in);
    case FrameType::close:
      return read_close(in);
    case FrameType::open_credit:
      return read_open_credit(in);
  }
  known = Known::no;
  return std::nullopt;
}

// Appends type, length and a body whose size is known only after it is written.
template <class WriteBody>
void write_sized(FrameType type, Buffer& out, WriteBody&& write_body) {
  Buffer body;
  ByteWriter writer(body);
  write_body(writer);
  ByteWriter framed(out);
  framed.u8(static_cast<std::uint8_t>(type));
  framed.sized(body);
}

}  // namespace

Result<std::optional<std::size_t>> frame_size(Bytes in) {
  ByteReader reader(in);
  reader.u8();
  auto body = reader.varint();
  if (!body) return std::optional<std::size_t>{};
  if (*body > kMaxFrameBody) return LinkError::frame_too_large;
  return std::optional(in.size() - reader.remaining() + static_cast<std::size_t>(*body));
}

std::optional<ParsedStreamFrame> parse_stream_frame(Bytes in) {
  if (in.empty() || in.front() != std::byte{static_cast<std::uint8_t>(FrameType::stream)})
    return std::nullopt;
  ByteReader reader(in.subspan(1));
  auto body = reader.sized();
  if (!body || body->size() > kMaxFrameBody) return std::nullopt;
  ByteReader content(*body);
  auto stream = content.varint(), offset = content.varint();
  Bytes payload = content.rest();
  if (!stream || !offset || payload.size() > kMaxStreamPayload || *offset > kMaxVarint - payload.size())
    return std::nullopt;
  return ParsedStreamFrame{{StreamId(*stream), StreamOffset(*offset), payload},
                           in.size() - reader.remaining()};
}

Result<std::optional<ParsedFrame>> parse_frame(Bytes in) {
  ByteReader reader(in);
  auto type = reader.u8();
  if (!type) return std::optional<ParsedFrame>{};
  auto size = reader.varint();
  if (!size) return std::optional<ParsedFrame>{};
  if (*size > kMaxFrameBody) return LinkError::frame_too_large;
  auto body = reader.bytes(*size);
  if (!body) return std::optional<ParsedFrame>{};

  ByteReader content(*body);
  Known known;
  auto frame = read_body(*type, content, known);
  if (known == Known::yes && (!frame || content.remaining() != 0)) return LinkError::malformed_frame;
  return std::optional(ParsedFrame{std::move(frame), in.size() - reader.remaining()});
}

std::size_t stream_head_size(StreamId stream, StreamOffset offset, std::size_t payload_bytes) {
  std::size_t body = varint_size(stream.number()) + varint_size(offset.number());
  return 1 + varint_size(body + payload_bytes) + body;
}

void write_stream_head(StreamId stream, StreamOffset offset, std::size_t payload_bytes, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(FrameType::stream));
  writer.varint(varint_size(stream.number()) + varint_size(offset.number()) + payload_bytes);
  writer.varint(stream.number());
  writer.varint(offset.number());
}

void write_frame(const Frame& frame, Buffer& out) {
  std::visit(Overloaded{
                 [&](const HelloFrame& hello) {
                   write_sized(FrameType::hello, out, [&](ByteWriter& body) { write_hello(hello, body); });
                 },
                 [&](const StreamFrame& stream) {
                   write_stream_head(stream.stream, stream.offset, stream.payload.size(), out);
                   ByteWriter(out).bytes(stream.payload);
                 },
                 [&](const AckFrame& ack) {
                   write_sized(FrameType::ack, out, [&](ByteWriter& body) {
                     for (const auto& entry : ack.entries) {
                       body.varint(entry.stream.number());
                       body.varint(entry.offset.number());
                     }
                   });
                 },
                 [&](const CreditFrame& credit) {
                   write_sized(FrameType::credit, out, [&](ByteWriter& body) {
                     for (const auto& entry : credit.entries) {
                       body.varint(entry.stream.number());
                       body.varint(entry.generation);
                       body.varint(entry.limit);
                     }
                   });
                 },
                 [&](const CreditReturnFrame& back) {
                   write_sized(FrameType::credit_return, out, [&](ByteWriter& body) {
                     body.varint(back.stream.number());
                     body.varint(back.generation);
                     body.varint(back.limit);
                   });
                 },
                 [&](const ResetFrame& reset) {
                   write_sized(FrameType::reset, out, [&](ByteWriter& body) {
                     body.varint(reset.stream.number());
                     body.u8(static_cast<std::uint8_t>(reset.code));
                     body.varint(reset.open_credit);
                   });
                 },
                 [&](const CloseFrame& close) {
                   write_sized(FrameType::close, out, [&](ByteWriter& body) {
                     body.u8(static_cast<std::uint8_t>(close.code));
                     body.text(std::string_view(close.text).substr(0, kMaxCloseTextBytes));
                   });
                 },
                 [&](const ResetDoneFrame& done) {
                   write_sized(FrameType::reset_done, out,
                               [&](ByteWriter& body) { body.varint(done.stream.number()); });
                 },
                 [&](const PingFrame& ping) {
                   write_sized(FrameType::ping, out, [&](ByteWriter& body) { body.varint(ping.number); });
                 },
                 [&](const PongFrame& pong) {
                   write_sized(FrameType::pong, out, [&](ByteWriter& body) { body.varint(pong.number); });
                 },
                 [&](const OpenCreditFrame& credit) {
                   write_sized(FrameType::open_credit, out, [&](ByteWriter& body) {
                     body.varint(credit.limit);
                     body.varint(credit.floor);
                   });
                 },
             },
             frame);
}

}  // namespace longhaul::link
