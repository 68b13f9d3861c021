// SPDX-License-Identifier: Apache-2.0
// Which message is meant, and what one message says of another: an answer acknowledges its request, the next
// request the answer before it.
#include "tools/txn/exchange.h"

#include <algorithm>

#include "tools/measuring/trouble.h"

namespace longhaul::txn {
namespace {

constexpr std::size_t kMostAnswers = 64;  // waiting to be sent; more would be a flood of questions
constexpr Cut kAnswerCut{kAnswerBytes, kAnswerBytes, 1};

}  // namespace

Cut request_cut(const Workload& workload, Family family) {
  const std::uint32_t datagram = datagram_bytes(workload, family);
  return {workload.file_bytes, datagram - static_cast<std::uint32_t>(kDatagramHeader),
          std::clamp(workload.window_bytes / datagram, 1u, kMostDatagramsInWindow)};
}

Exchange::Exchange(const Workload& workload, Family family, Direction sends)
    : workload_(workload), family_(family), sends_(sends), timer_(workload.retransmit_after) {}

ByteSource Exchange::bytes_of(Place place, Direction direction) const {
  const std::uint64_t transaction =
      workload_.content == Content::same ? 0 : std::uint64_t{place.connection} + std::uint64_t{place.message};
  return {workload_.key, transaction, direction};
}

void Exchange::begin_sending(Place place, Cut cut) {
  const Counts now = counts();
  sending_ = place;
  sender_.emplace(cut, timer_);
  earlier_ = now;
}

void Exchange::finish_sending() {
  if (sender_) sender_->finish();
}

void Exchange::begin_receiving(Place place, Cut cut) {
  receiving_ = place;
  receiver_.emplace(cut);
}

Counts Exchange::counts() const {
  Counts sum = earlier_;
  if (!sender_) return sum;
  sum.sent_again += sender_->counts().sent_again;
  sum.timeouts += sender_->counts().timeouts;
  sum.negatives += sender_->counts().negatives;
  return sum;
}

Exchange::Of Exchange::receive(TimePoint now, Bytes bytes) {
  const auto datagram = parse_datagram(bytes);
  if (!datagram || datagram->key != workload_.key) return Of::stranger;
  if (datagram->kind == Kind::data)
    return datagram->direction == receives() ? on_data(now, *datagram) : Of::earlier;
  const Place place{datagram->connection, datagram->message};
  if (datagram->direction != sends_ || place != sending_ || !sender_) return Of::earlier;
  if (datagram->kind == Kind::acknowledgement)
    sender_->on_acknowledgement(now, datagram->window, datagram->burst);
  else
    sender_->on_negative(datagram->window, datagram->burst, datagram->missing);
  return Of::current;
}

void Exchange::answer(const Datagram& datagram, const WindowReceiver::Answer& answer) {
  Datagram reply;
  reply.kind = answer.missing.empty() ? Kind::acknowledgement : Kind::negative;
  reply.direction = datagram.direction;
  reply.burst = answer.burst;
  reply.key = workload_.key;
  reply.connection = datagram.connection;
  reply.message = datagram.message;
  reply.window = answer.window;
  reply.size = datagram.size;
  reply.missing = answer.missing;
  if (answers_.size() == kMostAnswers) answers_.pop_front();
  answers_.push_back(std::move(reply));
}

Exchange::Of Exchange::acknowledge_again(const Datagram& datagram) {
  if (datagram.asks) answer(datagram, {datagram.window, datagram.burst, {}});
  return Of::earlier;
}

void Exchange::take(const Datagram& datagram) {
  const Cut cut = receives() == Direction::request ? request_cut(workload_, family_) : kAnswerCut;
  if (datagram.size != cut.message_bytes) return;
  const auto taken = receiver_->on_piece(datagram.window, datagram.burst, datagram.index,
                                         datagram.payload.size(), datagram.asks);
  const auto offset = cut.offset_of(datagram.window, datagram.index);
  if (taken.is_new && !bytes_of(receiving_, receives()).matches(offset, datagram.payload))
    throw measuring::Trouble("wrong bytes arrived at offset " + std::to_string(offset) + " of transaction " +
                             std::to_string(receiving_.connection + receiving_.message));
  if (taken.answer) answer(datagram, *taken.answer);
}

bool Exchange::poll_transmit(TimePoint now, Buffer& out) {
  if (!answers_.empty()) {
    encode(answers_.front(), out);
    answers_.pop_front();
    return true;
  }
  if (!sender_) return false;
  const auto piece = sender_->poll(now);
  if (!piece) return false;
  const Cut cut = sends_ == Direction::request ? request_cut(workload_, family_) : kAnswerCut;
  payload_.resize(cut.bytes_of(piece->window, piece->index));
  bytes_of(sending_, sends_).fill(cut.offset_of(piece->window, piece->index), payload_);
  Datagram datagram;
  datagram.direction = sends_;
  datagram.asks = piece->asks;
  datagram.burst = piece->burst;
  datagram.index = piece->index;
  datagram.key = workload_.key;
  datagram.connection = sending_.connection;
  datagram.message = sending_.message;
  datagram.window = piece->window;
  datagram.size = cut.message_bytes;
  datagram.payload = payload_;
  encode(datagram, out);
  return true;
}

std::optional<TimePoint> Exchange::next_timeout() const {
  return sender_ ? sender_->next_timeout() : std::nullopt;
}

void Exchange::on_timeout(TimePoint now) {
  if (sender_) sender_->on_timeout(now);
}

void Requester::begin(std::uint32_t transaction) {
  const bool connects = workload_.script == Script::eft_short;
  const Place place{connects ? transaction : 0, connects ? 0 : transaction};
  begin_sending(place, request_cut(workload_, family_));
  begin_receiving(place, kAnswerCut);
}

Exchange::Of Requester::on_data(TimePoint, const Datagram& datagram) {
  const Place place{datagram.connection, datagram.message};
  if (place < receiving_) return acknowledge_again(datagram);  // what acknowledged it was lost
  if (place > receiving_) return Of::stranger;
  finish_sending();  // an answer implies the whole request
  take(datagram);
  return Of::current;
}

Exchange::Of Responder::on_data(TimePoint, const Datagram& datagram) {
  const Place place{datagram.connection, datagram.message};
  if (begun_ && place < receiving_) return acknowledge_again(datagram);
  if (!begun_ || place > receiving_) {
    if (begun_ && !all_received()) return Of::earlier;  // no other starts before this one is answered
    begun_ = true;
    finish_sending();  // a new request implies the answer
    begin_receiving(place, request_cut(workload_, family_));
  }
  const bool had_all = all_received();
  take(datagram);
  if (had_all || !all_received()) return Of::current;
  ++requests_;
  begin_sending(place, kAnswerCut);
  return Of::current;
}

}  // namespace longhaul::txn
