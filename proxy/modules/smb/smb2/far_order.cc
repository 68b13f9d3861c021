// SPDX-License-Identifier: Apache-2.0
// See far_order.h. Waiting here costs at most a round trip on the server's LAN: promises made before a
// request have arrived, and were sent to the server, before it.
#include "proxy/modules/smb/smb2/far_order.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kMostOwn = 1024;

}  // namespace

void FarOrder::begin(Promise& promise, const Message& message) {
  const auto request = parse_write_request(message.first().bytes);
  if (message.header().command != Command::write || !request || promise.write) return;
  promise.write = true;
  promise.offset = request->offset;
  promise.length = static_cast<std::uint32_t>(request->data.size());
  unfinished_.is_write(promise.file, promise.sequence, promise.offset, promise.length);
}

Taken FarOrder::on_request(TimePoint now, const Message& message, const Changes&) {
  Sequence sequence = next_sequence_++;
  if (message.single()) {
    const MessageId id = message.header().message_id;
    if (message.header().command == Command::cancel) {
      // After its target, wherever that is.
      const OrderScope* target = message.header().is_async() ? nullptr : held_.find(id);
      if (!target) return Taken::no;
      OrderScope scope = *target;
      if (scope.kind == OrderScope::Kind::range) scope.kind = OrderScope::Kind::file;
      held_.hold({.message = message, .scope = std::move(scope), .sequence = sequence});
      return Taken::yes;
    }
    if (const auto promised = promises_.find(id); promised != promises_.end()) {
      sequence = promised->second.sequence;
      begin(promised->second, message);
      // If the room is not known yet, because no query was possible before, the near half waits for it.
      if (const Open* open = side_.connection().open(promised->second.open)) room_.ask(now, *open);
    }
  }
  OrderScope scope = order_scope_of(message, side_.connection());
  if (scope.kind == OrderScope::Kind::nothing) return Taken::no;
  const bool behind_any =
      !scope.is_barrier() && unfinished_.any_before(*side_.connection().any_file(), sequence);
  if (!held_.hold_up(scope) && !behind_any && !unfinished_.hold_up(scope, sequence)) return Taken::no;
  held_.hold({.message = message, .scope = std::move(scope), .sequence = sequence});
  return Taken::yes;
}

void FarOrder::release(TimePoint now, const FileGroupRef& file) {
  for (const Message& message : held_.release(file, unfinished_, *side_.connection().any_file()))
    side_.send(now, message);
}

void FarOrder::begin_own(std::uint64_t number, const FileName& name) {
  if (own_.size() >= kMostOwn || own_.contains(number)) return;
  const Own own{.file = side_.connection().group_of(name), .sequence = next_sequence_++};
  unfinished_.add(own.file, own.sequence);
  own_.emplace(number, own);
}

void FarOrder::end_own(TimePoint now, std::uint64_t number) {
  const auto own = own_.extract(number);
  if (own.empty()) return;
  unfinished_.remove(own.mapped().file, own.mapped().sequence, std::nullopt);
  release(now, own.mapped().file);
}

void FarOrder::done(TimePoint now, MessageId id, const Element& answer) {
  const auto found = promises_.find(id);
  const Promise promise = found->second;
  const auto written = parse_write_response(answer.bytes);
  const bool success = answer.header.status == Status::success;
  side_.out().tell(Kept{.message = number_of(id),
                        .status = static_cast<std::uint32_t>(answer.header.status),
                        .written = promise.write && success && written ? written->count : 0,
                        .credits = static_cast<std::uint16_t>(promise.credits + answer.header.credits)});
  unfinished_.remove(promise.file, promise.sequence,
                     promise.write ? std::optional(promise.offset) : std::nullopt);
  if (promise.write) room_.written(promise.open, promise.length);
  promises_.erase(found);
  const auto through = promised_through_.find(promise.open);
  if (through != promised_through_.end() && --through->second == 0) promised_through_.erase(through);
  if (const Open* open = side_.connection().open(promise.open)) room_.ask(now, *open);
  release(now, promise.file);
  returns_.give_back(promise.open);
}

Taken FarOrder::on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) {
  if (returns_.takes_break(now, message)) return Taken::yes;
  bool taken = false;
  for (const Connection::Answered& each : outcome.answered) {
    const auto found = promises_.find(each.request.id);
    if (!each.element || found == promises_.end()) continue;
    // Only single requests are promised, and a server answers those singly.
    if (!message.single()) {
      side_.out().abort();
      return Taken::yes;
    }
    taken = true;
    if (each.interim) {
      found->second.credits =
          static_cast<std::uint16_t>(found->second.credits + each.element->header.credits);
    } else {
      done(now, each.request.id, *each.element);
    }
  }
  return taken ? Taken::yes : Taken::no;
}

void FarOrder::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind == Change::Kind::closed) returns_.give_back(change.open->key);
    if (change.kind == Change::Kind::opened && (change.open->caching & lease_state::write))
      room_.ask(now, *change.open);
  }
  for (const Connection::Answered& each : outcome.answered) {
    if (each.request.command != Command::write || each.interim) continue;
    if (const Open* open = side_.connection().open(each.request.file)) room_.ask(now, *open);
  }
}

Taken FarOrder::on_twin(TimePoint, const TwinMessage& message, const Slice&) {
  if (const auto* promised = std::get_if<Promised>(&message)) {
    if (promises_.contains(id_of(promised->message)) || promises_.size() >= Connection::kMostPending) {
      side_.out().abort();  // not sent by our near half
      return Taken::yes;
    }
    const Open* open = side_.connection().open(promised->open);
    const Promise promise{.open = promised->open,
                          .file = open ? open->group : side_.connection().any_file(),
                          .sequence = next_sequence_++};
    unfinished_.add(promise.file, promise.sequence);
    ++promised_through_[promise.open];
    promises_.emplace(id_of(promised->message), promise);
    return Taken::yes;
  }
  if (const auto* broken = std::get_if<Broken>(&message)) {
    returns_.near_gives_back(broken->open);
    return Taken::yes;
  }
  return Taken::no;
}

}  // namespace longhaul::smb::smb2
