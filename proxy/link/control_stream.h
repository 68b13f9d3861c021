// SPDX-License-Identifier: Apache-2.0
// The stream for messages between two sessions that concern no single flow: features, and the messages of the
// block codec. Bytes are ordered and retained as in any stream; the session parses the records.
#pragma once
#include <optional>

#include "proxy/link/frames.h"
#include "proxy/link/reassembly.h"
#include "proxy/link/record_parser.h"
#include "proxy/link/send_stream.h"
#include "proxy/link/stream.h"

namespace longhaul::link {

class ControlStream {
 public:
  // `reader` receives the peer's records. Both outlive this object.
  ControlStream(StreamContext& context, RecordSink& reader) : context_(context), reader_(reader) {}
  ~ControlStream() { context_.retained.remove(sending_.retained_bytes()); }
  ControlStream(const ControlStream&) = delete;
  ControlStream& operator=(const ControlStream&) = delete;

  void write(RecordType type, Bytes body);
  SendStream& sending() { return sending_; }
  const SendStream& sending() const { return sending_; }
  void on_acknowledged(StreamOffset offset) { context_.retained.remove(sending_.on_acknowledged(offset)); }
  // Whether the peer causes more records than it acknowledges.
  bool overflows() const;

  // Records beyond this turn's work stay unread until read_on().
  Result<void> on_frame(const StreamFrame& frame);
  Result<void> read_on();
  bool has_unread() const { return !unread_.empty(); }
  StreamOffset received() const { return receiving_.contiguous(); }

  // ---- Messages of the block codec. Held blocks are reported as rarely as received bytes are acknowledged,
  // not with every packet that happens to be sent: only later blocks need the report.
  void codec_due(TimePoint at) { codec_at_ = codec_at_ ? std::min(*codec_at_, at) : at; }
  bool codec_is_due(TimePoint now) const { return codec_has_message() || (codec_at_ && now >= *codec_at_); }
  std::optional<TimePoint> codec_timeout() const { return codec_at_; }
  void poll_codec();

 private:
  bool codec_has_message() const;
  Result<Bytes> read(Bytes wire) { return parser_.feed(wire, reader_); }

  StreamContext& context_;
  RecordSink& reader_;
  SendStream sending_;
  Reassembly receiving_;
  RecordParser parser_;
  SliceQueue unread_;  // in order, to be read in another turn
  std::optional<TimePoint> codec_at_;
};

}  // namespace longhaul::link
