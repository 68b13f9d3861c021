// SPDX-License-Identifier: Apache-2.0
// A session whose peer has the right key and says anything: raw bytes in any splits, or frames that are well
// formed and mean anything, while flows here do anything a flow may do. It never crashes, its accounts stay
// exact, and it gives everything back at its end. The input chooses all of it.
#include <set>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/link/session.h"

namespace longhaul::fuzz::session_target {
using namespace longhaul::link;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kCap = 1 << 20;
constexpr std::uint32_t kMaxStreams = 8;

class Codec final : public BlockCodec {
 public:
  std::optional<BlockHeader> encode(std::uint64_t, const ReductionStages&, Bytes plain,
                                    Buffer& out) override {
    append(out, plain);
    return BlockHeader{.plain_bytes = static_cast<std::uint32_t>(plain.size()),
                       .checksum = BlockChecksum().of(plain)};
  }
  Result<std::optional<Slice>> decode(std::uint64_t stream, const BlockHeader& header,
                                      Bytes encoded) override {
    ++messages_;
    // Some blocks wait for the next message.
    if (header.ring_offset == 5 && !named_.contains(stream)) {
      waiting_.insert(stream);
      return std::nullopt;
    }
    named_.erase(stream);
    if (BlockChecksum().of(encoded) != header.checksum) return link::LinkError::malformed_record;
    return std::optional(Slice::copy_of(encoded));
  }
  std::optional<std::uint64_t> poll_ready() override {
    if (ready_.empty()) return std::nullopt;
    std::uint64_t stream = *ready_.begin();
    ready_.erase(ready_.begin());
    named_.insert(stream);
    return stream;
  }
  void forget(std::uint64_t stream) override {
    for (auto* set : {&waiting_, &ready_, &named_}) set->erase(stream);
  }
  Result<void> on_message(Bytes message) override {
    ready_.merge(std::exchange(waiting_, {}));
    if (as_text(message) == "breach") return link::LinkError::malformed_record;
    return {};
  }
  bool has_message() const override { return messages_ > 0; }
  std::optional<Slice> poll_message() override {
    if (messages_ == 0) return std::nullopt;
    --messages_;
    return Slice::copy_of(as_bytes("held"));
  }

 private:
  int messages_ = 0;
  std::set<std::uint64_t> waiting_, ready_, named_;  // streams
};

class Fuzzed {
 public:
  Fuzzed(Choices& choices, Side side, BlockCodec* codec, std::uint64_t work_per_turn)
      : choices_(choices),
        work_per_turn_(work_per_turn),
        first_peer_id_(side == Side::acceptor ? 1 : 2),
        side_(side),
        codec_(codec),
        pool_(kCap, kMaxStreams),
        retained_(kCap) {}

  // One session after another: each error of the peer ends one.
  void run() {
    do live();
    while (!choices_.empty());
  }

 private:
  void live() {
    session_ = std::make_unique<Session>(
        SessionConfig{.side = side_, .max_peer_streams = kMaxStreams, .work_per_turn = work_per_turn_}, pool_,
        retained_, codec_, now_);
    carriers_.clear();
    control_offset_ = 0;
    own_ = 0;
    over_ = false;
    if (choices_.byte() % 4) attach();
    for (unsigned opened = choices_.below(3); opened > 0; --opened) open();
    if (choices_.byte() % 2) transmit();
    while (!choices_.empty() && !over_) {
      switch (choices_.below(8)) {
        case 0:
          flow_step();
          break;
        case 1:
          time_or_carrier();
          break;
        case 2:
          receive(choices_.some(64));  // raw bytes: often the middle of a frame
          break;
        default:
          receive_frame();
      }
      session_->work().begin_turn();
      if (session_->state().has_work_left && !session_->go_on(now_)) over_ = true;
      events();
      require(retained_.used_bytes() == session_->state().retained_bytes);
      require(pool_.granted_bytes() + pool_.floor_bytes() * kMaxStreams <= kCap);
    }
    if (choices_.byte() % 2) end();
    transmit();
    session_.reset();
    require(retained_.used_bytes() == 0);
    require(pool_.granted_bytes() == 0);
  }

  void attach() {
    carriers_.push_back(++last_carrier_);
    session_->attach(last_carrier_, now_, 20ms);
  }

  void receive(Bytes bytes) {
    if (carriers_.empty()) return;
    CarrierId carrier = carriers_[choices_.byte() % carriers_.size()];
    unsigned step = choices_.byte();
    while (!bytes.empty()) {
      std::size_t size = step % 3 ? bytes.size() : 1 + step % 7;
      size = std::min(size, bytes.size());
      // Exactly that much, so that ASan sees a read past it.
      paid_bytes += size;
      std::vector<std::byte> exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      if (!session_->receive(carrier, exact, now_)) over_ = true;
      bytes = bytes.subspan(size);
    }
  }

  StreamId some_id() {
    unsigned choice = choices_.byte();
    return StreamId(choice % 16 == 0 ? choices_.number() : choice % 14);
  }

  bool is_peers(StreamId id) const { return id.number() % 2 == first_peer_id_.number() % 2; }

  // What an honest peer might say next on the stream; now and then anything.
  RecordType some_type(StreamId id) {
    unsigned choice = choices_.byte();
    if (choice % 16 == 0) return static_cast<RecordType>(choices_.below(11));
    if (id == kControlStream) return static_cast<RecordType>(7 + choice % 3);
    Stream* stream = session_->find(id);
    bool peers = is_peers(id);
    if (peers ? !stream || !stream->begun() : stream && !stream->answer())
      return peers ? RecordType::open : RecordType::answer;
    if (choice % 16 == 1) return choice < 128 ? RecordType::end : RecordType::abort;
    return static_cast<RecordType>(2 + choice % 3);
  }

  // The bytes of a record whose shape is right.
  Buffer some_record(StreamId id) {
    Buffer body, bytes;
    RecordType type = some_type(id);
    switch (type) {
      case RecordType::open: {
        OpenRequest request;
        request.destination.port = 80;
        request.forward_credit = choices_.byte() % 16 ? 100 * choices_.byte() : choices_.number();
        request.reverse_credit = choices_.number();
        request.features.compression = choices_.byte() % 2;
        if (choices_.byte() % 4 == 0) request.features.window_bytes = choices_.byte() * 16;
        write_open(request, body);
        break;
      }
      case RecordType::answer:
        write_answer({.outcome = static_cast<link::ConnectOutcome>(choices_.below(3))}, body);
        break;
      case RecordType::block: {
        Bytes plain = choices_.some(100);
        if (plain.empty()) plain = as_bytes("x");
        BlockHeader header{.plain_bytes = static_cast<std::uint32_t>(plain.size()),
                           .checksum = choices_.byte() % 8 ? BlockChecksum().of(plain) : 7,
                           .ring_offset = choices_.byte() % 8};
        write_block_header(header, body);
        append(body, plain);
        break;
      }
      case RecordType::allowed:
        write_features({}, body);
        break;
      case RecordType::features:
        ByteWriter(body).varint(some_id().number());
        write_features({}, body);
        break;
      case RecordType::end:
      case RecordType::abort:
        break;
      default:
        append(body, choices_.some(100));
    }
    write_record_head(type, body.size(), bytes);
    append(bytes, body);
    return bytes;
  }

  void receive_frame() {
    Buffer bytes;
    StreamId id = some_id();
    switch (choices_.below(16)) {
      case 0:
        write_frame(
            AckFrame{{{id, StreamOffset(choices_.number())}, {some_id(), StreamOffset(choices_.number())}}},
            bytes);
        break;
      case 1:
        write_frame(CreditFrame{{{id, choices_.number(), choices_.number()}}}, bytes);
        break;
      case 2:
        write_frame(CreditReturnFrame{id, choices_.number(), choices_.number()}, bytes);
        break;
      case 3:
        write_frame(ResetFrame{id, static_cast<ResetCode>(choices_.below(6)),
                               choices_.byte() % 4 ? 0 : choices_.number()},
                    bytes);
        break;
      case 4:
        write_frame(ResetDoneFrame{id}, bytes);
        break;
      case 5:
        write_frame(PingFrame{choices_.number()}, bytes);
        write_frame(PongFrame{choices_.byte()}, bytes);
        break;
      case 6:
        write_frame(OpenCreditFrame{choices_.number(), choices_.number()}, bytes);
        break;
      case 7:  // anywhere in the stream
        write_frame(
            StreamFrame{id, StreamOffset(std::min(choices_.number(), kMaxVarint - 100)), choices_.some(64)},
            bytes);
        break;
      default: {
        Buffer record = some_record(id);
        Stream* stream = session_->find(id);
        std::uint64_t offset = id == kControlStream ? control_offset_
                               : stream             ? stream->reader().wire_received().number()
                                                    : 0;
        if (id == kControlStream) control_offset_ += record.size();
        if (choices_.byte() % 16 == 0) offset += choices_.byte();
        write_frame(StreamFrame{id, StreamOffset(offset), record}, bytes);
      }
    }
    receive(bytes);
  }

  void open() {
    if (over_ || own_ >= 6) return;
    OpenRequest request;
    request.destination.port = 80;
    request.features.compression = choices_.byte() % 2;
    session_->open(std::move(request), now_);
    ++own_;
  }

  // As a link ends its session, a few streams at a time.
  void end() {
    session_->abandon(now_);
    over_ = true;
    for (bool left = true; left;) {
      left = session_->end_streams(1 + choices_.below(4));
      if (choices_.byte() % 2) events();
      if (choices_.byte() % 2) flow_step();
    }
    events();
    require(retained_.used_bytes() == session_->state().retained_bytes);
  }

  // Streams that a flow knows: those opened here, and those it was told of, until it lets go.
  void flow_step() {
    unsigned action = choices_.below(10);
    if (action == 9) return open();
    StreamId id(choices_.below(14));
    Stream* stream = session_->find(id);
    if (!stream || !stream->begun() || stream->entry().released) return;
    bool peers = is_peers(id);
    switch (action) {
      case 0:
        if (peers && !stream->answer()) stream->give_answer({});
        break;
      case 1:
      case 2:
        if (peers && !stream->answer()) stream->give_answer({});
        stream->writer().write(std::vector<std::byte>(
            std::min<std::size_t>(stream->writer().may_write(), 10 * choices_.byte())));
        paid_bytes += 10 * 255;
        break;
      case 3:
        if (stream->writer().may_write() >= message_cost(3) && (!peers || stream->answer()))
          stream->writer().write_message(as_bytes("abc"));
        break;
      case 4:
        stream->reader().consume(
            std::min<std::size_t>(stream->reader().readable_before_message(), 8 * choices_.byte()), now_,
            20ms);
        stream->reader().poll_message(now_, 20ms);
        break;
      case 5:
        stream->writer().end();
        break;
      case 6:
        stream->abort();
        break;
      case 7:
        stream->reset(ResetCode::aborted);
        break;
      case 8:
        session_->release(id);
        break;
      default:
        break;
    }
  }

  void time_or_carrier() {
    switch (choices_.below(6)) {
      case 0:
        if (carriers_.size() < 3) attach();
        break;
      case 1:
        if (!carriers_.empty()) {
          auto victim = carriers_.begin() + choices_.below(static_cast<unsigned>(carriers_.size()));
          session_->detach(*victim, now_);
          carriers_.erase(victim);
        }
        break;
      case 2:
        now_ += std::chrono::milliseconds(choices_.byte() * choices_.byte());
        session_->on_timeout(now_);
        // With the time told, the next deadline lies ahead.
        if (auto next = session_->next_timeout()) require(*next > now_);
        break;
      default:
        transmit();
    }
  }

  void transmit() {
    if (carriers_.empty()) return;
    Buffer out;
    bool wants = session_->outgoing().wants_to_transmit(carriers_.back(), now_);
    session_->outgoing().transmit(carriers_.back(), 200 + 100 * choices_.byte(), 1 + 8 * choices_.byte(), out,
                                  now_);
    require(wants || out.empty());
    for (Bytes rest = out; !rest.empty();) {
      auto parsed = parse_frame(rest);
      require(parsed.has_value() && parsed->has_value() && (*parsed)->frame);
      rest = rest.subspan((*parsed)->consumed);
    }
  }

  void events() {
    while (auto event = session_->poll_event()) {
      if (event->kind == Event::Kind::expired) over_ = true;
      if (event->kind != Event::Kind::stream) continue;
      Stream* stream = session_->find(event->stream);
      require(stream && stream->begun() && !stream->entry().released);
    }
  }

  Choices& choices_;
  std::uint64_t work_per_turn_;
  StreamId first_peer_id_;
  Side side_;
  BlockCodec* codec_;
  TimePoint now_{1h};
  CreditPool pool_;
  RetainedBudget retained_;
  std::unique_ptr<Session> session_;
  std::vector<CarrierId> carriers_;
  CarrierId last_carrier_;
  std::uint64_t control_offset_ = 0;
  int own_ = 0;
  bool over_ = false;
};

}  // namespace

FUZZ_TARGET(session) {
  Choices choices(std::as_bytes(std::span(data, size)));
  unsigned start = choices.byte();
  Codec codec;
  const std::uint64_t work_per_turn = start >= 128 ? 300 * (start % 64) : WorkBudget::kUnlimited;
  Fuzzed(choices, start % 2 ? Side::dialler : Side::acceptor, start % 4 > 1 ? &codec : nullptr, work_per_turn)
      .run();
  return 0;
}

}  // namespace longhaul::fuzz::session_target
