// SPDX-License-Identifier: Apache-2.0
// See near_opens.h.
#include "proxy/modules/smb/smb2/near_opens.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/attribute_life.h"
#include "proxy/modules/smb/smb2/look.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
namespace {

// Approximate memory of an offer, except the names.
constexpr std::size_t kOfferBytes = 512;

std::string asked_in(SessionId session, TreeId tree, const Slice& request) {
  Buffer key;
  LittleEndianWriter writer(key);
  writer.u64(session);
  writer.u32(tree);
  writer.bytes(request.bytes());
  return std::string(as_text(key));
}

template <class Offer>
void note(Offer& offer, const TwinMessage& message) {
  if (std::holds_alternative<Ahead>(message)) ++offer.pushes;
  if (const auto* dropped = std::get_if<Drop>(&message)) offer.dropped = *dropped;
}

// A message about an open that the client may not know yet.
const OpenKey* open_of(const TwinMessage& message) {
  if (const auto* ahead = std::get_if<Ahead>(&message)) return &ahead->open;
  if (const auto* answer = std::get_if<Answer>(&message)) return &answer->open;
  if (const auto* held = std::get_if<Held>(&message)) return &held->open;
  if (const auto* dropped = std::get_if<Drop>(&message)) return &dropped->open;
  if (const auto* watched = std::get_if<Watched>(&message)) return &watched->open;
  return nullptr;
}

// The server's answers to these queries, if all have arrived and others have changed nothing since.
std::optional<std::vector<Slice>> answers_in(const std::vector<std::pair<TwinMessage, Slice>>& known,
                                             const std::vector<Slice>& questions) {
  std::vector<std::optional<Slice>> found(questions.size());
  for (const auto& [message, attached] : known) {
    const auto* watched = std::get_if<Watched>(&message);
    if (std::holds_alternative<Drop>(message) || (watched && !watched->watched)) return std::nullopt;
    const auto* answer = std::get_if<Answer>(&message);
    if (!answer || Status{answer->status} != Status::success) continue;
    for (std::size_t i = 0; i < questions.size(); ++i)
      if (as_text(answer->request.bytes()) == as_text(questions[i].bytes())) found[i] = attached;
  }
  std::vector<Slice> answers;
  for (std::optional<Slice>& each : found) {
    if (!each) return std::nullopt;
    answers.push_back(std::move(*each));
  }
  return answers;
}

}  // namespace

NearOpens::~NearOpens() { account_->held_bytes -= held_bytes_; }

// ---- requests

void NearOpens::before_request(TimePoint, const Message& message, const Changes&) {
  if (!unsettles_names(message)) return;
  for (const Element& element : message.elements)
    if (unsettling_.size() < Connection::kMostPending) unsettling_.insert(element.header.message_id);
}

void NearOpens::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  if (unsettling_.empty()) return;
  for (const Connection::Answered& each : outcome.answered)
    if (!each.interim) unsettling_.erase(each.request.id);
}

Taken NearOpens::on_request(TimePoint now, const Message& message, const Changes&) {
  if (message.header().command != Command::create || offers_.empty()) return Taken::no;
  if (!unsettling_.empty() || !side_.surroundings().features.metadata) return Taken::no;
  if (!message.single()) return look(now, message);
  const auto create = parse_create_request(message.first().bytes);
  const auto asked = create ? plain_open(message.header(), *create) : std::nullopt;
  const auto found = asked ? offer_for(message, *asked) : std::nullopt;
  if (!found) return Taken::no;

  const std::uint64_t number = (*found)->first;
  const Offered offer = take(*found);
  modules::Counters& counters = side_.counters();
  ++counters.opens_ahead_used;
  ++counters.metadata_answers;
  side_.out().tell(Took{number});
  side_.answer_create(now, message,
                      build_message(answer_to(message.header(), Status::success), offer.response.bytes()),
                      offer.questions);
  tell_known(now, offer);
  return Taken::yes;
}

std::optional<NearOpens::Offers::iterator> NearOpens::offer_for(const Message& message,
                                                                const PlainOpen& asked) {
  const Header& header = message.header();
  const auto found = by_request_.find(asked_in(header.session_id, header.tree_id, encode(asked)));
  if (found == by_request_.end()) return std::nullopt;
  const Pending* pending = side_.connection().pending(header.message_id);
  if (!pending || !pending->opening || header.charge() != 1 ||
      side_.connection().being_opened(*pending->opening->group, pending->id)) {
    return std::nullopt;
  }
  return offers_.find(found->second);
}

Taken NearOpens::look(TimePoint now, const Message& message) {
  const auto asked = look_in(message);
  const auto found = asked ? offer_for(message, *asked) : std::nullopt;
  if (!found) return Taken::no;
  const Offered& offer = (*found)->second;
  const auto answers = answers_in(offer.known, questions_in(as_bytes(*asked->queries)));
  const bool is_old = side_.surroundings().features.metadata_relaxed && now - offer.came > kSharedLife;
  if (!answers || is_old) return Taken::no;
  const Slice response = response_to_look(message, offer.response.bytes(), *answers);
  modules::Counters& counters = side_.counters();
  ++counters.opens_ahead_used;
  ++counters.metadata_answers;
  counters.ahead_bytes += offer.bytes;
  counters.ahead_used_bytes += offer.bytes;
  side_.out().tell(Took{(*found)->first});
  keep_for_revoke(*found);
  side_.answer_compound(now, message, response);
  return Taken::yes;
}

Taken NearOpens::on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) {
  if (offers_.empty()) return Taken::no;
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::opened) continue;
    const auto found = by_open_.find(change.open->key);
    if (found == by_open_.end()) continue;
    const Offered offer = take(offers_.find(found->second));
    if (!offer.given_up) ++side_.counters().opens_ahead_used;
    side_.out().to_lan(message.frame.bytes);
    tell_known(now, offer);
    return Taken::yes;
  }
  return Taken::no;
}

void NearOpens::tell_known(TimePoint now, const Offered& offer) {
  for (std::uint64_t i = 0; i < offer.pushes; ++i) side_.again(now, Ahead{.open = offer.open}, {});
  if (offer.dropped) side_.again(now, *offer.dropped, {});
  for (const auto& [message, attached] : offer.known) side_.again(now, message, attached);
}

// ---- messages of the twin

Taken NearOpens::on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  if (const auto* offer = std::get_if<Offer>(&message)) {
    offered(now, *offer, attached);
    return Taken::yes;
  }
  if (const auto* revoked = std::get_if<Revoke>(&message)) {
    // If it was given to the client, Took is under way.
    if (const auto found = offers_.find(revoked->number); found != offers_.end()) {
      if (!found->second.given_up) give_up(found);
      take(found);
    }
    return Taken::yes;
  }
  const OpenKey* open = open_of(message);
  return open ? keep(*open, message, attached) : Taken::no;
}

void NearOpens::offered(TimePoint now, const Offer& offer, const Slice& response) {
  ++side_.counters().opens_ahead;
  Offered entry{.open = offer.open,
                .request = asked_in(offer.open.session, offer.open.tree, offer.request),
                .questions = questions_in(offer.questions.bytes()),
                .response = response,
                .known = {},
                .came = now};
  if (offers_.size() >= kMostOffers || offers_.contains(offer.number) || by_open_.contains(entry.open)) {
    ++side_.counters().opens_ahead_wasted;
    side_.out().tell(GaveUp{offer.number});
    return;
  }
  entry.state_bytes = kOfferBytes + entry.request.size() + response.size();
  state_bytes_ += entry.state_bytes;
  const bool fresh = by_request_.emplace(entry.request, offer.number).second && !nothing_;
  by_open_.emplace(entry.open, offer.number);
  const auto added = offers_.emplace(offer.number, std::move(entry)).first;
  if (!fresh) give_up(added);
}

Taken NearOpens::keep(const OpenKey& open, const TwinMessage& message, const Slice& attached) {
  const auto found = by_open_.find(open);
  if (found == by_open_.end()) return Taken::no;
  const auto offer = offers_.find(found->second);
  const std::uint64_t bytes = attached.size();
  if (offer->second.given_up) {
    side_.counters().ahead_bytes += bytes;
    side_.wasted(bytes);
    note(offer->second, message);
    return Taken::yes;
  }
  if (held_bytes_ + bytes > kMostBytes || offer->second.known.size() >= kMostKnown ||
      account_->held_bytes + bytes > account_->most_bytes) {
    side_.counters().ahead_bytes += bytes;
    side_.wasted(bytes);
    give_up(offer);
    note(offer->second, message);
    return Taken::yes;
  }
  held_bytes_ += bytes;
  account_->held_bytes += bytes;
  offer->second.bytes += bytes;
  offer->second.known.emplace_back(message, attached);
  offer->second.state_bytes += sizeof(TwinMessage);
  state_bytes_ += sizeof(TwinMessage);
  return Taken::yes;
}

void NearOpens::give_up_all() {
  for (auto offer = offers_.begin(); offer != offers_.end(); ++offer)
    if (!offer->second.given_up) give_up(offer);
}

// What it occupies here.
void NearOpens::release(Offered& offer) {
  held_bytes_ -= offer.bytes;
  account_->held_bytes -= offer.bytes;
  offer.bytes = 0;
  state_bytes_ -= std::exchange(offer.state_bytes, 0);
}

NearOpens::Offered NearOpens::take(Offers::iterator offer) {
  Offered taken = std::move(offer->second);
  release(taken);
  if (!taken.given_up) by_request_.erase(taken.request);
  by_open_.erase(taken.open);
  offers_.erase(offer);
  return taken;
}

void NearOpens::give_up(Offers::iterator found) {
  const Offered& offer = found->second;
  side_.out().tell(GaveUp{found->first});
  ++side_.counters().opens_ahead_wasted;
  side_.counters().ahead_bytes += offer.bytes;
  side_.wasted(offer.bytes);
  keep_for_revoke(found);
}

// What the far half sends about the open until then is not for a client.
void NearOpens::keep_for_revoke(Offers::iterator found) {
  Offered& offer = found->second;
  release(offer);
  const auto by_request = by_request_.find(offer.request);
  if (by_request->second == found->first) by_request_.erase(by_request);
  offer.given_up = true;
  for (const auto& [message, attached] : std::exchange(offer.known, {})) note(offer, message);
  offer.request.clear();
  offer.questions.clear();
  offer.response = {};
}

}  // namespace longhaul::smb::smb2
