// SPDX-License-Identifier: Apache-2.0
// A UDP carrier whose peer has the right keys and says anything, while strangers send what they like: it
// never crashes, never spins, sends only authentic packets of whole frames that no path is too small for, and
// its session gives everything back. The input chooses all of it.
#include <memory>
#include <set>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/link/udp/udp_carrier.h"

namespace longhaul::fuzz::udp_carrier_target {
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kCap = 1 << 20;
constexpr std::uint32_t kMaxStreams = 8;

CarrierKeys keys() {
  Buffer exported(kExportedBytes);
  for (std::size_t i = 0; i < exported.size(); ++i) exported[i] = std::byte(i * 7 + 1);
  return keys_from_exporter(exported);
}

UdpAddress address(unsigned port) {
  return {boost::asio::ip::make_address_v4(0x0a000001), static_cast<std::uint16_t>(port)};
}

// Whatever frame it is: it must not read past its end, and what it says is within bounds.
void read_carrier_frame(CarrierFrameType type, Bytes body) {
  Buffer again;
  switch (type) {
    case CarrierFrameType::packet_ack:
      if (auto ack = parse_packet_ack(body)) {
        require(!ack->ranges.empty() && ack->ranges.size() <= kMaxAckRanges);
        for (std::size_t i = 0; i < ack->ranges.size(); ++i) {
          require(ack->ranges[i].first <= ack->ranges[i].last);
          require(i == 0 || ack->ranges[i].last + 1 < ack->ranges[i - 1].first);
        }
        write_packet_ack(*ack, again);
      }
      break;
    case CarrierFrameType::symbol:
      if (auto symbol = parse_symbol(body)) write_symbol(*symbol, again);
      break;
    case CarrierFrameType::repair:
      if (auto repair = parse_repair(body)) write_repair(*repair, again);
      break;
    case CarrierFrameType::recovered:
      if (auto numbers = parse_recovered(body)) {
        for (std::size_t i = 1; i < numbers->size(); ++i) require((*numbers)[i] < (*numbers)[i - 1]);
        write_recovered(*numbers, again);
      }
      break;
    default:
      (void)parse_path_token(body);
  }
  // What was read comes back when it is written: never longer, for numbers may have been longer than
  // necessary.
  require(again.size() <= frame_head_size(body.size()) + body.size() + 2);
}

class Fuzzed {
 public:
  explicit Fuzzed(Choices& choices) : choices_(choices), pool_(kCap, kMaxStreams), retained_(kCap) {}

  void run() {
    do live();
    while (!choices_.empty());
  }

 private:
  void live() {
    unsigned start = choices_.byte();
    side_ = start & 1 ? Side::dialler : Side::acceptor;
    Cipher cipher = start & 2 ? Cipher::aes_128_gcm : Cipher::chacha20_poly1305;
    session_ = std::make_unique<Session>(SessionConfig{.side = side_, .max_peer_streams = kMaxStreams}, pool_,
                                         retained_, nullptr, now_);
    settings_ = {.rate_bits = start & 4 ? 10'000'000u : 0u};
    carrier_ = std::make_unique<UdpCarrier>(
        UdpCarrierConfig{.side = side_,
                         .keys = keys(),
                         .cipher = cipher,
                         .peer = side_ == Side::dialler ? address(1) : UdpAddress{},
                         .settings = settings_,
                         .path = {},
                         .new_carrier = [this] { return ++last_carrier_; }},
        *session_, now_);
    sealer_.emplace(keys().received_by(side_), cipher);
    opener_.emplace(keys().sent_by(side_), cipher);
    numbers_.clear();
    symbols_ = 0;
    stream_ = nullptr;
    bool over = false;
    if (choices_.byte() % 8) {  // as honest peers begin
      Buffer payload;
      write_frame(OpenCreditFrame{200'000, 16'384}, payload);
      over = !receive(payload);
      transmit();
    }
    while (!choices_.empty() && !over) over = !step();
    carrier_.reset();
    session_.reset();
    require(retained_.used_bytes() == 0);
    require(pool_.granted_bytes() == 0);
  }

  // False: the session is over.
  bool step() {
    bool good = true;
    switch (choices_.below(16)) {
      case 0:
        if (seldom()) good = receive(choices_.some(250));
        break;
      case 1:
        stranger();
        break;
      case 2:
      case 3:
        time_passes();
        break;
      case 4:
        writes();
        break;
      case 5:
        operator_or_socket();
        break;
      case 6:
      case 7:
      case 8:
        good = acknowledge();
        break;
      default:
        good = receive_frames();
    }
    transmit();
    while (auto event = session_->poll_event()) {
      if (event->kind != Event::Kind::stream || event->stream_event != EventKind::opened) continue;
      if (Stream* opened = session_->find(event->stream)) {
        opened->give_answer({});
        opened->writer().write(
            std::vector<std::byte>(std::min<std::size_t>(opened->writer().may_write(), 5'000)));
      }
    }
    return good;
  }

  bool receive(Bytes payload) {
    Buffer packet(kPacketOverhead + std::max<std::size_t>(payload.size(), 1), std::byte{0});
    std::copy(payload.begin(), payload.end(), packet.begin() + kPacketHeaderBytes);
    sealer_->on_acknowledged(sealer_->next_number() - (sealer_->next_number() == PacketNumber{} ? 0 : 1));
    require(sealer_->seal(packet).has_value());
    unsigned fate = choices_.byte();
    if (fate % 8 == 0) return true;  // lost
    Buffer again = packet;
    UdpAddress from = address(fate % 32 == 1 ? 2 : 1);
    bool good = carrier_->receive(packet, from, now_).has_value();
    auto dropped = carrier_->counters().packets_dropped;
    require(carrier_->receive(again, from, now_).has_value());
    require(carrier_->counters().packets_dropped == dropped + 1);
    return good;
  }

  void stranger() {
    Bytes bytes = choices_.some(60);
    Buffer packet(bytes.begin(), bytes.end());
    if (choices_.byte() % 2 && packet.size() > kPacketOverhead)
      write_packet_header({.phase = static_cast<KeyPhase>(choices_.below(2)),
                           .id = carrier_->own_id(),
                           .low_number = static_cast<std::uint32_t>(choices_.number())},
                          MutableBytes(packet).first<kPacketHeaderBytes>());
    auto dropped = carrier_->counters().packets_dropped;
    require(carrier_->receive(packet, address(3), now_).has_value());
    require(carrier_->counters().packets_dropped == dropped + 1);
  }

  // What is a breach of the protocol, mostly, ends a session before anything can build up.
  bool seldom() { return choices_.byte() % 32 == 5; }

  PacketNumber some_sent() {
    if (numbers_.empty() || seldom()) return PacketNumber(choices_.number());
    PacketNumber last = *numbers_.rbegin();
    return last - std::min<std::uint64_t>(last.number(), choices_.below(16));
  }

  // As an honest peer does: what came, but for some holes.
  bool acknowledge() {
    if (numbers_.empty()) return true;
    PacketAck ack{.delay = 1ms * choices_.below(30), .arrival = now_ - TimePoint{1h}, .ranges = {}};
    unsigned holes = choices_.byte();
    for (auto number = numbers_.rbegin(); number != numbers_.rend(); ++number) {
      bool hole = (holes = holes * 5 + 3) % 16 == 7;
      if (hole) continue;
      if (!ack.ranges.empty() && ack.ranges.back().first == *number + 1) {
        ack.ranges.back().first = *number;
      } else if (ack.ranges.size() < kMaxAckRanges) {
        ack.ranges.push_back({*number, *number});
      } else {
        break;
      }
    }
    if (ack.ranges.empty()) return true;
    Buffer payload;
    write_packet_ack(ack, payload);
    bool good = receive(payload);
    if (good && carrier_->state() == UdpCarrier::State::up) carrier_->prefer(now_);
    return good;
  }

  bool receive_frames() {
    Buffer payload;
    for (unsigned frames = 1 + choices_.below(3); frames > 0; --frames) {
      switch (choices_.below(13)) {
        case 0: {  // an ACK of anything
          PacketNumber last = some_sent();
          PacketAck ack{.delay = 1us * choices_.byte(), .arrival = 1us * choices_.byte(), .ranges = {}};
          ack.ranges.push_back({last - std::min<std::uint64_t>(last.number(), choices_.byte()), last});
          write_packet_ack(ack, payload);
          break;
        }
        case 1:
          write_filler(choices_.byte() % 2 ? CarrierFrameType::probe : CarrierFrameType::padding,
                       2 + choices_.byte(), payload);
          break;
        case 2: {
          PathToken token{std::byte(choices_.byte())};
          write_path_token(
              choices_.byte() % 2 ? CarrierFrameType::path_challenge : CarrierFrameType::path_response, token,
              payload);
          break;
        }
        case 3:
        case 4:
          write_symbol({static_cast<fec::Class>(choices_.below(3)),
                        !seldom() ? symbols_++ : std::min(choices_.number(), kMaxVarint - 1)},
                       payload);
          break;
        case 5:
        case 6: {
          std::uint64_t first = choices_.byte() % 8
                                    ? symbols_ - std::min<std::uint64_t>(symbols_, choices_.below(8))
                                    : choices_.number();
          Bytes coded = choices_.some(100);
          write_repair({static_cast<fec::Class>(choices_.below(3)),
                        {{std::min(first, kMaxVarint), seldom() ? choices_.byte() : 1 + choices_.below(9)},
                         seldom() ? choices_.byte() : choices_.below(64),
                         coded}},
                       payload);
          break;
        }
        case 7: {
          RecoveredNumbers numbers;
          for (PacketNumber number = some_sent(); numbers.size() < choices_.below(6); number = number - 1) {
            numbers.push_back(number);
            if (number == PacketNumber{}) break;
          }
          write_recovered(numbers, payload);
          break;
        }
        case 8: {  // anything under a carrier's type
          auto type = static_cast<CarrierFrameType>(0x20 + choices_.below(16));
          Bytes body = choices_.some(60);
          read_carrier_frame(type, body);
          if (!seldom()) break;
          write_frame_head(type, body.size(), payload);
          append(payload, body);
          break;
        }
        case 9:
          write_frame(PingFrame{choices_.number()}, payload);
          break;
        case 10:
          write_frame(OpenCreditFrame{choices_.byte() * 1000u, choices_.byte() * 100u}, payload);
          break;
        case 11: {  // a flow of the peer's
          Buffer open, records;
          OpenRequest request;
          request.destination.port = 80;
          request.reverse_credit = choices_.number();
          write_open(request, open);
          write_record_head(RecordType::open, open.size(), records);
          append(records, open);
          write_frame(StreamFrame{StreamId((side_ == Side::acceptor ? 1u : 2u) + 2 * choices_.below(4)),
                                  StreamOffset(0), records},
                      payload);
          break;
        }
        case 12:
          write_frame(AckFrame{{{StreamId(choices_.below(4)), StreamOffset(choices_.number())}}}, payload);
          break;
      }
    }
    return receive(Bytes(payload).first(std::min<std::size_t>(payload.size(), 1'400)));
  }

  void time_passes() {
    unsigned step = choices_.byte();
    // An ACK after months makes a round trip of months, and the next timeout of more: no clock goes on so
    // long.
    if (now_ > TimePoint{24h * 365}) return;
    if (auto next = carrier_->next_timeout(); next && step % 2) {
      now_ = std::max(now_, *next);
    } else {
      now_ += std::chrono::microseconds(step * step * choices_.byte());
    }
    // With the time told and all sent, nothing is left for this moment. One timer may bring out another.
    for (int calls = 0; calls == 0 || (carrier_->next_timeout() && *carrier_->next_timeout() <= now_);
         ++calls) {
      require(calls < 8);
      session_->on_timeout(now_);
      carrier_->on_timeout(now_);
      transmit();
    }
  }

  void writes() {
    if (!stream_) {
      if (session_->state().live_streams > 4) return;
      OpenRequest request;
      request.destination.port = 80;
      stream_ = &session_->open(std::move(request), now_);
      stream_id_ = stream_->id();
    }
    stream_ = session_->find(stream_id_);
    if (stream_)
      stream_->writer().write(
          std::vector<std::byte>(std::min<std::size_t>(stream_->writer().may_write(), 40 * choices_.byte())));
  }

  void operator_or_socket() {
    switch (choices_.below(5)) {
      case 0:
        carrier_->on_too_large(choices_.byte() * 40, now_);
        break;
      case 1:
        settings_.rate_bits = choices_.byte() * 100'000u;
        settings_.most_bits = choices_.byte() % 2 * 5'000'000u;
        carrier_->set(settings_, now_);
        break;
      case 2:
        settings_.fec = {.mode = static_cast<config::Fec::Mode>(choices_.below(3)),
                         .source_packets = static_cast<std::uint8_t>(1 + choices_.below(20)),
                         .repair_packets = static_cast<std::uint8_t>(1 + choices_.below(5))};
        carrier_->set(settings_, now_);
        break;
      case 3:
        carrier_->probe(now_);
        break;
      case 4:
        if (carrier_->state() == UdpCarrier::State::up) carrier_->prefer(now_);
        break;
    }
  }

  void transmit() {
    for (int batches = 0; carrier_->transmit(batch_, now_); ++batches) {
      require(batches < 2'000);
      require(!batch_.bytes.empty() && batch_.segment_bytes > kPacketOverhead);
      require(batch_.segments() <= DatagramBatch::kMaxSegments);
      for (std::size_t at = 0; at < batch_.bytes.size(); at += batch_.segment_bytes)
        check_packet(
            Bytes(batch_.bytes).subspan(at, std::min(batch_.segment_bytes, batch_.bytes.size() - at)));
    }
  }

  void check_packet(Bytes bytes) {
    Buffer packet(bytes.begin(), bytes.end());
    auto opened = opener_->open(packet, now_);
    require(opened.has_value());
    numbers_.insert(opened->number);
    if (numbers_.size() > 500) numbers_.erase(numbers_.begin());
    bool only_fills = true;
    for (Bytes rest = opened->payload; !rest.empty();) {
      auto size = frame_size(rest);
      require(size.has_value() && size->has_value() && **size <= rest.size());
      if (is_carrier_frame(rest.front())) {
        ByteReader in(rest.subspan(1));
        read_carrier_frame(static_cast<CarrierFrameType>(rest.front()), *in.sized());
      } else {
        auto parsed = parse_frame(rest);
        require(parsed.has_value() && parsed->has_value() && (*parsed)->frame);
      }
      auto type = static_cast<CarrierFrameType>(rest.front());
      only_fills &= type == CarrierFrameType::probe || type == CarrierFrameType::padding;
      rest = rest.subspan(**size);
    }
    // Only the search for the path's size goes beyond what the path is known to take.
    require(only_fills || bytes.size() <= std::max(carrier_->flight().mtu().current(), PathMtu::kBase));
  }

  Choices& choices_;
  CreditPool pool_;
  RetainedBudget retained_;
  TimePoint now_{1h};
  Side side_ = Side::dialler;
  CarrierId last_carrier_;
  UdpSettings settings_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<UdpCarrier> carrier_;
  std::optional<PacketSealer> sealer_;  // the peer's
  std::optional<PacketOpener> opener_;
  std::set<PacketNumber> numbers_;  // that the carrier sent lately
  std::uint64_t symbols_ = 0;
  Stream* stream_ = nullptr;
  StreamId stream_id_;
  DatagramBatch batch_;
};

}  // namespace

FUZZ_TARGET(udp_carrier) {
  Choices choices(std::as_bytes(std::span(data, std::min<std::size_t>(size, 4'000))));
  Fuzzed(choices).run();
  return 0;
}

}  // namespace longhaul::fuzz::udp_carrier_target
