// SPDX-License-Identifier: Apache-2.0
// See near_listings.h.
#include "proxy/modules/smb/smb2/near_listings.h"

#include <utility>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/compound.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::uint8_t kAfresh = query_directory_flags::restart_scans | query_directory_flags::reopen;

}  // namespace

void NearListings::before_request(TimePoint, const Message& message, const Changes& changes) {
  // A listing of which more was fetched than the client has received cannot be left to a signed session.
  if (side_.connection().sessions().any_untouchable()) {
    const Pending* request = side_.connection().pending(message.header().message_id);
    const bool lists = request && request->command == Command::query_directory;
    const auto listing =
        lists ? listings_.find(key_of(request->session, request->tree, request->file)) : listings_.end();
    if (listing != listings_.end() && listing->second.active) side_.out().abort();
  }
  if (may_change_names(message, changes, side_.connection()))
    name_changes_.changed(message.header().session_id, message.header().tree_id);
}

NearListings::Version NearListings::version_of(const OpenKey& key) const {
  const Open* open = side_.connection().open(key);
  return {.changes = name_changes_.in(key.session, key.tree),
          .doubts = open ? open->group->count(&FileCounts::doubts) : 0};
}

bool NearListings::is_stale(TimePoint now, const OpenKey& key, const Listing& listing) const {
  const Version now_is = version_of(key);
  if (listing.seen.changes != now_is.changes) return true;
  if (side_.surroundings().features.metadata_relaxed) return listing.fetched.is_older_than(now, kLife);
  // A restarted one is returned whether it is watched or not.
  const Open* open = side_.connection().open(key);
  return listing.seen.doubts != now_is.doubts || (listing.afresh && (!open || !open->watched)) ||
         listing.fetched.is_old(now);
}

void NearListings::restart(Listing& listing, MessageId by, std::uint8_t info_class, const Version& seen) {
  held_bytes_ -= listing.fetched.bytes();
  listing.fetched.restart();
  listing.generation = by;
  listing.info_class = info_class;
  listing.seen = seen;
}

void NearListings::wait(Listing& listing, const Message& message) {
  listing.waiting.push_back(kept(message));
  held_bytes_ += message.frame.bytes.size();
  ++waiting_;
}

void NearListings::waits_no_more(Listing& listing) {
  held_bytes_ -= listing.waiting.front().frame.bytes.size();
  --waiting_;
  listing.waiting.pop_front();
}

Taken NearListings::on_request(TimePoint now, const Message& message, const Changes&) {
  if (!message.single()) return compound(now, message);
  if (message.header().command != Command::query_directory) return Taken::no;
  const auto request = parse_query_directory_request(message.first().bytes);
  const Open* open = request ? side_.connection().open(request->file) : nullptr;
  if (!open || open->session != message.header().session_id || open->tree != message.header().tree_id)
    return Taken::no;
  Listing& listing = listings_[open->key];
  // It would be answered after those that wait.
  if (waiting_ >= kMostWaiting) {
    side_.out().abort();
    return Taken::yes;
  }
  if (!std::exchange(listing.asked, true)) {
    // Only from the beginning: if it was listed before it was tracked, it is unknown which entries the client
    // has.
    const bool ours = side_.surroundings().features.metadata && open->directory &&
                      lists(request->info_class) &&
                      !(request->flags & query_directory_flags::index_specified);
    listing.given_up = listing.given_up || !ours;
  }
  if (listing.given_up && !((request->flags & kAfresh) && side_.surroundings().features.metadata))
    return Taken::no;
  listing.given_up = !lists(request->info_class);
  if (listing.given_up && !listing.active && listing.waiting.empty()) return Taken::no;
  listing.given_up = false;
  wait(listing, message);
  advance(now, open->key);
  return Taken::yes;
}

// Requests that begin a listing pass: [MS-SMB2] section 3.3.5.2.7 requires consecutive responses. If the
// server's position was already moved here, their elements are answered one by one, as servers may do
// (3.3.4.1.3).
Taken NearListings::compound(TimePoint now, const Message& message) {
  bool ours = false, simple = true;
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    const Open* open = request ? side_.connection().open(request->file) : nullptr;
    const bool lists = element.header.command == Command::query_directory;
    simple &= lists || element.header.command == Command::close;
    if (!lists || !open) continue;
    const auto found = listings_.find(open->key);
    if (found == listings_.end()) continue;
    const Listing& listing = found->second;
    ours |= listing.active || listing.at_server || !listing.waiting.empty();
  }
  if (!ours) {
    with_open_.passes(message);
    return Taken::no;
  }
  if (!simple) {
    side_.out().abort();  // no known client does so
    return Taken::yes;
  }
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    const auto single = request ? alone(element, *request) : std::nullopt;
    if (!single) {
      side_.out().abort();
    } else if (element.header.command == Command::close || on_request(now, *single, {}) == Taken::no) {
      side_.pass_on(now, *single);
    }
  }
  return Taken::yes;
}

void NearListings::advance(TimePoint now, const OpenKey& key) {
  for (;;) {
    const auto found = listings_.find(key);
    if (found == listings_.end() || found->second.waiting.empty() || found->second.at_server) return;
    Listing& listing = found->second;
    const Message message = listing.waiting.front();
    const auto request = parse_query_directory_request(message.first().bytes);
    if (!request) return;
    const bool begun_for_it = listing.generation == message.header().message_id;
    if (!begun_for_it && (!listing.active || (request->flags & kAfresh))) {
      waits_no_more(listing);
      if (!begin(now, key, listing, message, *request)) return;
      continue;
    }
    const bool rest = listing.fetched.has_rest();
    const bool other = request->info_class != listing.info_class;
    if (!begun_for_it && rest && (other || is_stale(now, key, listing)) && listing.served <= kMostRepeated) {
      begin_afresh(now, key, listing, message, *request);
      return;
    }
    if (!serve(now, key, listing, message, *request)) return;
  }
}

// As requested by the client. Returns false if others wait for its response.
bool NearListings::begin(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
                         const QueryDirectoryRequest& request) {
  restart(listing, message.header().message_id, request.info_class, version_of(key));
  listing.active = false;
  if (!side_.surroundings().features.metadata || !lists(request.info_class)) {
    side_.pass_on(now, message);
    return true;
  }
  listing.at_server = true;
  listing.afresh = false;
  listing.served = request.flags & kAfresh ? 0 : listing.told_before;
  side_.out().tell(Enumerate{.open = key,
                             .message = number_of(listing.generation),
                             .served = listing.served,
                             .info_class = request.info_class,
                             .pattern = Slice::copy_of(request.pattern)});
  side_.pass_on(now, message);
  return false;
}

void NearListings::begin_afresh(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
                                const QueryDirectoryRequest& request) {
  restart(listing, message.header().message_id, request.info_class, version_of(key));
  listing.afresh = true;
  QueryDirectoryRequest again = request;
  again.flags = query_directory_flags::restart_scans;
  const Frame frame{.kind = FrameKind::smb2,
                    .bytes = build_query_directory_request(head_of(message.header()), again)};
  const auto parsed = parse_message(frame);
  if (!parsed) return side_.out().abort();  // built here
  side_.out().tell(Enumerate{.open = key,
                             .message = number_of(listing.generation),
                             .all = true,
                             .served = listing.served,
                             .info_class = request.info_class,
                             .pattern = Slice::copy_of(request.pattern)});
  side_.pass_on(now, *parsed);
}

// Returns false if it must wait.
bool NearListings::serve(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
                         const QueryDirectoryRequest& request) {
  if (!listing.fetched.has_next()) return false;
  const bool single = request.flags & query_directory_flags::return_single_entry;
  held_bytes_ -= listing.fetched.bytes();
  const auto part = listing.fetched.take(request.output_bytes, single);
  held_bytes_ += listing.fetched.bytes();
  listing.served += part.count;
  answer(now, listing, message, part.status, part.entries);
  if (const auto taken = listing.fetched.poll_taken()) side_.out().tell(More{.open = key, .bytes = *taken});
  waits_no_more(listing);
  return true;
}

void NearListings::answer(TimePoint now, const Listing& listing, const Message& request, Status status,
                          Bytes entries) {
  const Header header = answer_to(request.header(), status);
  modules::Counters& counters = side_.counters();
  // The query for which the listing was restarted has cost a round trip, and the server knows its id.
  const bool sent = listing.generation == header.message_id;
  if (!sent) ++counters.metadata_answers;
  counters.ahead_used_bytes += entries.size();
  side_.answer(
      now, header.message_id,
      status == Status::success ? build_buffer_response(header, entries) : build_error_response(header),
      sent ? NearSide::Told::yes : NearSide::Told::no);
}

void NearListings::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  // First, because the number of a closed open may be reused by a new one.
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::closed) continue;
    const auto found = listings_.find(change.open->key);
    if (found == listings_.end()) continue;
    Listing listing = std::move(found->second);
    listings_.erase(found);
    held_bytes_ -= listing.fetched.bytes();
    for (; !listing.waiting.empty(); waits_no_more(listing))
      answer(now, listing, listing.waiting.front(), Status::file_closed, {});
  }
  for (const Connection::Answered& each : outcome.answered) {
    if (!each.element || each.interim || each.request.command != Command::query_directory) continue;
    const OpenKey key = key_of(each.request.session, each.request.tree, each.request.file);
    const auto parsed = parse_buffer_response(each.element->bytes);
    const auto response =
        each.element->header.status == Status::success && parsed ? std::optional(*parsed) : std::nullopt;
    if (auto begun = with_open_.answered(each.request, response))
      if (listings_.try_emplace(key, *std::move(begun)).second) continue;
    const auto found = listings_.find(key);
    if (found == listings_.end() || found->second.generation != each.request.id || !found->second.at_server) {
      if (response && side_.connection().open(key))
        told(listings_[key], each.request, Slice::copy_of(response->buffer));
      continue;
    }
    Listing& listing = found->second;
    listing.at_server = false;
    if (response) {
      const auto entries = parse_listing(listing.info_class, Slice::copy_of(response->buffer));
      listing.active = entries.has_value();  // otherwise the far half does not continue either
      if (entries) listing.served += entries->size();
    }
    advance(now, key);
  }
}

// The server has answered the client itself; a later start by this half continues after it.
void NearListings::told(Listing& listing, const Pending& request, const Slice& entries) {
  const auto parsed = parse_listing(request.info_class, entries);
  if (!parsed || !side_.surroundings().features.metadata) {
    listing.given_up = true;
    return;
  }
  if (request.lists_afresh) listing.told_before = 0;
  listing.told_before += parsed->size();
}

Taken NearListings::on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  const auto* pushed = std::get_if<Answer>(&message);
  if (!pushed || pushed->command != static_cast<std::uint16_t>(Command::query_directory)) return Taken::no;
  side_.counters().ahead_bytes += attached.size();
  const auto found = listings_.find(pushed->open);
  if (found == listings_.end() || pushed->request.size() != sizeof(MessageId)) return Taken::yes;
  Listing& listing = found->second;
  if (MessageId{load_le<std::uint64_t>(pushed->request.bytes(), 0)} != listing.generation) return Taken::yes;
  const Status status{pushed->status};
  if (status == Status::pending && !listing.afresh && !listing.fetched.has_come()) {
    // None of it can be fetched. The server's position is the client's.
    listing.active = false;
    listing.given_up = true;
    listing.told_before = listing.served;
    for (; !listing.waiting.empty(); waits_no_more(listing)) side_.pass_on(now, listing.waiting.front());
    return Taken::yes;
  }
  if (status == Status::success) {
    const auto entries = parse_listing(listing.info_class, attached);
    if (!entries) {
      side_.out().abort();  // the far half has parsed it: not sent by our far half
      return Taken::yes;
    }
    held_bytes_ -= listing.fetched.bytes();
    listing.fetched.add(now, *entries);
    held_bytes_ += listing.fetched.bytes();
    if (held_bytes_ > kMostQueuedBytes) side_.out().abort();  // our far half never sends that much ahead
  } else {
    // `pending`: the far half cannot continue, and the client's position is unknown. An error informs the
    // client.
    listing.fetched.end(now, status == Status::pending ? Status::insufficient_resources : status);
  }
  advance(now, pushed->open);
  return Taken::yes;
}

}  // namespace longhaul::smb::smb2
