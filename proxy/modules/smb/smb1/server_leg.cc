// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/server_leg.h"

#include <algorithm>

namespace longhaul::smb::smb1 {

namespace {

bool overlap(const Interval& a, const Interval& b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

void ServerLeg::send(Slice frame, MessageNumber number, bool has_answer, const Scope& scope) {
  queue({.frame = std::move(frame), .number = number, .has_answer = has_answer, .scope = scope});
  pump();
}

void ServerLeg::send_promised(Slice frame, const Scope& scope, const Promise& promise, OnAnswer on_answer) {
  queue({.frame = std::move(frame),
         .renumbered = true,
         .scope = scope,
         .names = promise.open,
         .promise = promise,
         .on_answer = std::move(on_answer)});
  pump();
}

void ServerLeg::send_renumbered(Slice frame, const Scope& scope, OnAnswer on_answer) {
  std::optional<OpenKey> names;
  if (scope.of == Scope::Of::open) names = scope.open;
  queue({.frame = std::move(frame),
         .renumbered = true,
         .scope = scope,
         .names = names,
         .on_answer = std::move(on_answer)});
  pump();
}

void ServerLeg::send_raw(Slice frame, MessageNumber number) {
  queue({.frame = std::move(frame), .number = number, .raw = true, .scope = {Scope::Of::silence, {}, {}}});
  pump();
}

void ServerLeg::send_raw_data(Slice frame) {
  raw_.from_client();
  out_.to_lan(std::move(frame));
  pump();
}

bool ServerLeg::on_raw(const Frame& frame, Connection& connection) {
  const auto says = raw_.from_server(frame, connection);
  if (says == RawTransfer::Says::go_ahead || !raw_.under_way()) {
    connection.answered_here(raw_.number());
    answered(raw_.number());
  }
  return says != RawTransfer::Says::other;
}

void ServerLeg::answered(MessageNumber number) {
  clients_.erase(number);
  pump();
}

bool ServerLeg::may_go(const Waiting& waiting) const {
  if (raw_.under_way()) return false;
  if (waiting.has_answer && !has_place()) return false;
  const Scope& scope = waiting.scope;
  if (scope.of == Scope::Of::nothing) return true;
  if (scope.of == Scope::Of::silence) return own_.empty() && listening_.empty();
  return std::none_of(own_.begin(), own_.end(), [&](const auto& each) {
    const auto& promise = each.second.promise;
    if (scope.of == Scope::Of::closing && each.second.names == scope.open) return true;
    if (!promise) return false;
    if (scope.of == Scope::Of::everything) return true;
    if (promise->open != scope.open) return false;
    return scope.of != Scope::Of::overlap || promise->range.size() == 0 ||
           overlap(promise->range, scope.range);
  });
}

// If nothing of ours is pending, the client itself is responsible for the number of its requests.
bool ServerLeg::has_place() const { return outstanding() < max_mpx_ || own_.empty(); }

void ServerLeg::pump() {
  while (!queue_.empty() && may_go(queue_.front())) send_first();
}

void ServerLeg::flush() {
  while (!queue_.empty()) send_first();
}

void ServerLeg::count(const OpenKey& open, Counts what) {
  if (what == Counts::begin) {
    ++busy_[open];
  } else if (const auto found = busy_.find(open); found != busy_.end() && --found->second == 0) {
    busy_.erase(found);
  }
}

void ServerLeg::count(const std::optional<Promise>& promise, Counts what) {
  if (!promise) return;
  promises_ += what == Counts::begin ? 1 : std::size_t(-1);
  count(promise->open, what);
}

void ServerLeg::count(const Waiting& waiting, Counts what) {
  count(waiting.promise, what);
  if (waiting.scope.of == Scope::Of::open || waiting.scope.of == Scope::Of::closing)
    count(waiting.scope.open, what);
}

void ServerLeg::queue(Waiting waiting) {
  // A small frame shares the memory of its neighbours, which may be much larger.
  constexpr std::size_t kCopied = 16 << 10;
  if (waiting.frame.size() <= kCopied && (!queue_.empty() || !may_go(waiting)))
    waiting.frame = Slice::copy_of(waiting.frame.bytes());
  count(waiting, Counts::begin);
  queued_bytes_ += waiting.frame.size() + kWaitingBytes;
  queue_.push_back(std::move(waiting));
}

void ServerLeg::send_first() {
  Waiting next = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= next.frame.size() + kWaitingBytes;
  count(next, Counts::end);
  go(std::move(next));
}

void ServerLeg::go(Waiting next) {
  if (!next.renumbered) {
    if (next.has_answer && clients_.size() < kMostOutstanding) clients_.insert(next.number);
    if (next.raw)
      if (const auto header = parse_header(next.frame.bytes().subspan(kFrameHeadBytes))) raw_.begin(*header);
    out_.to_lan(std::move(next.frame));
    return;
  }
  // The client may have reused its MID, because for the client the request is answered.
  const std::uint16_t mid = take_mid();
  own_[mid] = {std::move(next.on_answer), next.names, next.promise};
  count(next.promise, Counts::begin);
  Renumbered request = renumbered(next.frame, kOwnPid, mid);
  out_.to_lan(std::move(request.head));
  out_.to_lan(std::move(request.rest));
}

bool ServerLeg::has_room() const {
  if (!queue_.empty() || raw_.under_way()) return false;
  const std::size_t reserve = max_mpx_ > 8 ? 2 : 1;  // so that the client's next request need not wait
  return outstanding() + reserve < max_mpx_;
}

bool ServerLeg::has_room_for_client() const { return queue_.empty() && !raw_.under_way() && has_place(); }

std::uint16_t ServerLeg::take_mid() {
  do {
    ++last_mid_;
  } while (last_mid_ == 0 || last_mid_ == kBreakMid || own_.contains(last_mid_) ||
           listening_.contains(last_mid_));
  return last_mid_;
}

void ServerLeg::inject(std::uint16_t uid, std::uint16_t tid, std::uint16_t flags2,
                       std::optional<OpenKey> names, const std::function<Slice(const Ids&)>& build,
                       OnAnswer on_answer) {
  if (raw_.under_way()) {
    queue({.frame = build({kOwnPid, uid, tid, 0, flags2}),
           .renumbered = true,
           .names = names,
           .on_answer = std::move(on_answer)});
    return;
  }
  const std::uint16_t mid = take_mid();
  own_[mid] = {std::move(on_answer), names, std::nullopt};
  out_.to_lan(build({kOwnPid, uid, tid, mid, flags2}));
}

void ServerLeg::listen(std::uint16_t uid, std::uint16_t tid, std::uint16_t flags2,
                       const std::function<Slice(const Ids&)>& build, OnAnswer on_answer) {
  const std::uint16_t mid = take_mid();
  listening_[mid] = std::move(on_answer);
  out_.to_lan(build({kOwnPid, uid, tid, mid, flags2}));
}

void ServerLeg::inject_unanswered(std::uint16_t uid, std::uint16_t tid, std::uint16_t flags2,
                                  const std::function<Slice(const Ids&)>& build) {
  Slice frame = build({kOwnPid, uid, tid, take_mid(), flags2});
  if (raw_.under_way()) return send(std::move(frame), {}, false, {});
  out_.to_lan(std::move(frame));
}

bool ServerLeg::on_answer(const Message& answer) {
  if (answer.header.pid != kOwnPid) return false;
  if (auto listened = listening_.extract(answer.header.mid); !listened.empty()) {
    listened.mapped()(answer);
    pump();
    return true;
  }
  const auto found = own_.find(answer.header.mid);
  if (found == own_.end()) return true;  // more than the server announced: the client must not receive it
  // The callback may inject, which moves the map's contents, and must find its own request completed.
  Own own = std::move(found->second);
  own_.erase(found);
  count(own.promise, Counts::end);
  if (own.on_answer && own.on_answer(answer) == Parts::more) {
    count(own.promise, Counts::begin);
    own_.insert_or_assign(answer.header.mid, std::move(own));
  }
  pump();
  return true;
}

std::vector<OpenKey> ServerLeg::owed() const {
  std::vector<OpenKey> opens;
  for (const auto& [mid, own] : own_)
    if (own.promise) opens.push_back(own.promise->open);
  for (const Waiting& waiting : queue_)
    if (waiting.promise) opens.push_back(waiting.promise->open);
  return opens;
}

bool ServerLeg::is_busy(const OpenKey& open) const { return busy_.contains(open); }

}  // namespace longhaul::smb::smb1
