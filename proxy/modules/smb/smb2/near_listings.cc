// SPDX-License-Identifier: Apache-2.0
// See near_listings.h.
#include "proxy/modules/smb/smb2/near_listings.h"

#include <algorithm>
#include <utility>

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::uint8_t kAfresh = query_directory_flags::restart_scans | query_directory_flags::reopen;

// An element of a compound as a message of its own. QUERY_DIRECTORY and CLOSE have their file at the same
// place (2.2.33, 2.2.15).
std::optional<Message> alone(const Element& element, const Pending& request) {
  constexpr std::size_t kFileAt = 8;
  Header header = element.header;
  header.flags &= ~header_flags::related;
  header.next_command = 0;
  header.session_id = request.session;
  header.tree_id = request.tree;
  Buffer body;
  append(body, element.body());
  if (body.size() < kFileAt + 16) return std::nullopt;
  store_le(body.data() + kFileAt, request.file.persistent_part);
  store_le(body.data() + kFileAt + 8, request.file.volatile_part);
  auto message = parse_message({.kind = FrameKind::smb2, .bytes = build_message(header, body)});
  return message ? std::optional(std::move(*message)) : std::nullopt;
}

}  // namespace

void NearListings::before_request(TimePoint, const Message& message, const Changes& changes) {
  // A listing of which the server has sent us more than the client has got cannot be left to a signed
  // session.
  if (side_.connection().sessions().any_untouchable()) {
    const Pending* request = side_.connection().pending(message.header().message_id);
    const bool lists = request && request->command == Command::query_directory;
    const auto listing =
        lists ? listings_.find(key_of(request->session, request->tree, request->file)) : listings_.end();
    if (listing != listings_.end() && listing->second.active) side_.out().abort();
  }
  bool changed = changes_names(message);
  for (const Change& change : changes) changed = changed || change.kind == Change::Kind::voided;
  if (!changed) return;
  const std::pair tree{message.header().session_id, message.header().tree_id};
  if (changes_.contains(tree) || changes_.size() < Connection::kMostTrees) {
    ++changes_[tree];
  } else {
    ++other_changes_;
  }
}

std::uint64_t NearListings::changes_in(SessionId session, TreeId tree) const {
  const auto found = changes_.find({session, tree});
  return other_changes_ + (found == changes_.end() ? 0 : found->second);
}

std::uint64_t NearListings::doubts_of(const OpenKey& key) const {
  const Open* open = side_.connection().open(key);
  return open ? open->group->count(&FileCounts::doubts) : 0;
}

bool NearListings::is_stale(TimePoint now, const OpenKey& key, const Listing& listing) const {
  if (listing.changes != changes_in(key.session, key.tree)) return true;
  if (side_.surroundings().features.metadata_relaxed)
    return listing.came != TimePoint{} && now - listing.came > kLife;
  // A restarted one is returned whether it is watched or not.
  const Open* open = side_.connection().open(key);
  return listing.doubts != doubts_of(key) || (listing.afresh && (!open || !open->watched)) ||
         is_old(now, listing);
}

bool NearListings::is_old(TimePoint now, const Listing& listing) {
  if (listing.arrived.empty() && !listing.end) return false;  // what comes next is under way
  const TimePoint since = listing.arrived.empty() ? listing.came : listing.arrived.front().first;
  return since != TimePoint{} && now - since > kUnreportedLife;
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

void NearListings::clear(Listing& listing) {
  held_bytes_ -= listing.queue.bytes();
  listing.queue.clear();
  listing.arrived.clear();
}

Taken NearListings::on_request(TimePoint now, const Message& message, const Changes&) {
  if (!message.single()) return compound(now, message);
  if (message.header().command != Command::query_directory) return Taken::no;
  const auto request = parse_query_directory_request(message.first().bytes);
  const Open* open = request ? side_.connection().open(request->file) : nullptr;
  if (!open || open->session != message.header().session_id || open->tree != message.header().tree_id)
    return Taken::no;
  Listing& listing = listings_[open->key];
  // It would be answered behind those that wait.
  if (waiting_ >= kMostWaiting) {
    side_.out().abort();
    return Taken::yes;
  }
  if (!std::exchange(listing.asked, true)) {
    // Only from the beginning: if it was listed before we tracked it, we do not know which entries the client
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

// Requests that begin a listing pass: [MS-SMB2] section 3.3.5.2.7 requires their answers in a row. If we have
// moved the server's position already their elements are answered one by one, as servers may do (3.3.4.1.3).
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
    begin_with_open(message);
    return Taken::no;
  }
  if (!simple) {
    side_.out().abort();  // no client has been seen to do so
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

// Linux opens a directory and requests its beginning at once. The far half continues when the server has
// answered.
void NearListings::begin_with_open(const Message& message) {
  if (!side_.surroundings().features.metadata || message.elements.size() != 2) return;
  const Element &create = message.elements[0], &query = message.elements[1];
  if (create.header.command != Command::create || query.header.command != Command::query_directory) return;
  const Pending* pending = side_.connection().pending(query.header.message_id);
  const auto request = parse_query_directory_request(query.bytes);
  if (!pending || !request || !(query.header.flags & header_flags::related) || !lists(request->info_class) ||
      request->flags & query_directory_flags::index_specified) {
    return;
  }
  Beginning& beginning = beginning_[pending->id];
  beginning = {.session = pending->session, .tree = pending->tree, .listing = {}};
  beginning.listing.generation = pending->id;
  beginning.listing.info_class = request->info_class;
  beginning.listing.asked = true;
  beginning.listing.changes = changes_in(beginning.session, beginning.tree);
  side_.out().tell(Enumerate{.open = {},
                             .message = pending->id,
                             .info_class = request->info_class,
                             .pattern = Slice::copy_of(request->pattern)});
}

// False: it was not begun so, or cannot be continued; then this answer is like any other.
bool NearListings::begun_with_open(const OpenKey& key, const Pending& request,
                                   const std::optional<BufferResponse>& response) {
  const auto found = beginning_.find(request.id);
  if (found == beginning_.end()) return false;
  Listing listing = std::move(found->second.listing);
  beginning_.erase(found);
  if (!response || !side_.connection().open(key) || listings_.contains(key)) return false;
  const auto entries = parse_listing(listing.info_class, Slice::copy_of(response->buffer));
  if (!entries) return false;
  listing.active = true;
  listing.doubts = doubts_of(key);
  listing.served = entries->size();
  listings_[key] = std::move(listing);
  return true;
}

// Requests that may add or remove names, or change their entries.
bool NearListings::changes_names(const Message& message) const {
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    switch (element.header.command) {
      case Command::create: {
        const auto create = parse_create_request(element.bytes);
        if (!create || create->disposition != Disposition::open ||
            (create->options & create_options::delete_on_close)) {
          return true;
        }
        break;
      }
      case Command::set_info:
      case Command::write:
        return true;
      case Command::close: {
        const Open* open = request ? side_.connection().open(request->file) : nullptr;
        if (!open || (open->access & (access::delete_file | access::generic_all | access::maximum_allowed)))
          return true;
        break;
      }
      default:
        break;
    }
  }
  return false;
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
    const bool rest = !listing.end || !listing.queue.empty();
    const bool other = request->info_class != listing.info_class;
    if (!begun_for_it && rest && (other || is_stale(now, key, listing)) && listing.served <= kMostRepeated) {
      begin_afresh(now, key, listing, message, *request);
      return;
    }
    if (!serve(now, key, listing, message, *request)) return;
  }
}

// As the client requested it. False: others wait for its answer.
bool NearListings::begin(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
                         const QueryDirectoryRequest& request) {
  listing.active = false;
  clear(listing);
  listing.end.reset();
  if (!side_.surroundings().features.metadata || !lists(request.info_class)) {
    side_.pass_on(now, message);
    return true;
  }
  listing.generation = message.header().message_id;
  listing.info_class = request.info_class;
  listing.at_server = true;
  listing.afresh = false;
  listing.changes = changes_in(key.session, key.tree);
  listing.doubts = doubts_of(key);
  listing.served = request.flags & kAfresh ? 0 : listing.told_before;
  listing.left_bytes = 0;
  listing.came = {};
  side_.out().tell(Enumerate{.open = key,
                             .message = listing.generation,
                             .served = listing.served,
                             .info_class = request.info_class,
                             .pattern = Slice::copy_of(request.pattern)});
  side_.pass_on(now, message);
  return false;
}

void NearListings::begin_afresh(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
                                const QueryDirectoryRequest& request) {
  const Header& header = message.header();
  listing.generation = header.message_id;
  listing.info_class = request.info_class;
  clear(listing);
  listing.end.reset();
  listing.afresh = true;
  listing.changes = changes_in(key.session, key.tree);
  listing.doubts = doubts_of(key);
  listing.left_bytes = 0;
  listing.came = {};
  QueryDirectoryRequest again = request;
  again.flags = query_directory_flags::restart_scans;
  const RequestHead head{.message_id = header.message_id,
                         .credit_charge = header.credit_charge,
                         .credit_request = header.credits,
                         .tree_id = header.tree_id,
                         .session_id = header.session_id,
                         .channel_sequence = header.channel_sequence,
                         .process_id = header.process_id};
  const Frame frame{.kind = FrameKind::smb2, .bytes = build_query_directory_request(head, again)};
  const auto parsed = parse_message(frame);
  if (!parsed) return side_.out().abort();  // our own making
  side_.out().tell(Enumerate{.open = key,
                             .message = listing.generation,
                             .all = true,
                             .served = listing.served,
                             .info_class = request.info_class,
                             .pattern = Slice::copy_of(request.pattern)});
  side_.pass_on(now, *parsed);
}

// False: it must wait.
bool NearListings::serve(TimePoint now, const OpenKey& key, Listing& listing, const Message& message,
                         const QueryDirectoryRequest& request) {
  if (listing.queue.empty() && !listing.end) return false;
  if (listing.queue.empty()) {
    answer(now, listing, message, *listing.end, {});
  } else {
    const bool single = request.flags & query_directory_flags::return_single_entry;
    held_bytes_ -= listing.queue.bytes();
    const auto part = listing.queue.take(request.output_bytes, single);
    held_bytes_ += listing.queue.bytes();
    listing.served += part.entries;
    for (std::size_t left = part.entries; left != 0;) {
      const std::size_t taken = std::min(left, listing.arrived.front().second);
      left -= taken;
      if ((listing.arrived.front().second -= taken) == 0) listing.arrived.pop_front();
    }
    listing.left_bytes += part.buffer.size();
    // [MS-FSA] 2.1.5.6.3: the first entry must fit.
    answer(now, listing, message, part.entries ? Status::success : Status::info_length_mismatch, part.buffer);
    if (listing.left_bytes >= kToldBytes && !listing.end) {
      side_.out().tell(More{.open = key, .bytes = listing.left_bytes});
      listing.left_bytes = 0;
    }
  }
  waits_no_more(listing);
  return true;
}

void NearListings::answer(TimePoint now, const Listing& listing, const Message& request, Status status,
                          Bytes entries) {
  const Header header = answer_to(request.header(), status);
  modules::Counters& counters = side_.counters();
  // The one for which the listing was restarted has cost a round trip, and the server knows its id.
  const bool sent = listing.generation == header.message_id;
  if (!sent) ++counters.metadata_answers;
  counters.ahead_used_bytes += entries.size();
  side_.answer(
      now, header.message_id,
      status == Status::success ? build_buffer_response(header, entries) : build_error_response(header),
      sent ? NearSide::Told::yes : NearSide::Told::no);
}

void NearListings::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  // First: the number of a closed one may be reused by a new open.
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::closed) continue;
    const auto found = listings_.find(change.open->key);
    if (found == listings_.end()) continue;
    Listing listing = std::move(found->second);
    listings_.erase(found);
    clear(listing);
    for (; !listing.waiting.empty(); waits_no_more(listing))
      answer(now, listing, listing.waiting.front(), Status::file_closed, {});
  }
  for (const Connection::Answered& each : outcome.answered) {
    if (!each.element || each.interim || each.request.command != Command::query_directory) continue;
    const OpenKey key = key_of(each.request.session, each.request.tree, each.request.file);
    const auto parsed = parse_buffer_response(each.element->bytes);
    const auto response =
        each.element->header.status == Status::success && parsed ? std::optional(*parsed) : std::nullopt;
    if (begun_with_open(key, each.request, response)) continue;
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

// The server has answered the client itself; a later start of ours continues behind it.
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
  if (load_le<std::uint64_t>(pushed->request.bytes(), 0) != listing.generation) return Taken::yes;
  const Status status{pushed->status};
  if (status == Status::pending && !listing.afresh && listing.came == TimePoint{}) {
    // None of it can be fetched. The server's position is the client's.
    listing.active = false;
    listing.given_up = true;
    listing.told_before = listing.served;
    for (; !listing.waiting.empty(); waits_no_more(listing)) side_.pass_on(now, listing.waiting.front());
    return Taken::yes;
  }
  listing.came = now;
  if (status == Status::success) {
    const auto entries = parse_listing(listing.info_class, attached);
    if (!entries) {
      side_.out().abort();  // the far half has parsed it: not sent by our far half
      return Taken::yes;
    }
    held_bytes_ -= listing.queue.bytes();
    for (const ListingEntry& entry : *entries) listing.queue.add(entry.bytes);
    if (!entries->empty()) listing.arrived.emplace_back(now, entries->size());
    held_bytes_ += listing.queue.bytes();
    if (held_bytes_ > kMostQueuedBytes) side_.out().abort();  // our far half never sends that much ahead
  } else {
    // `pending`: it cannot continue, and neither can we know the client's position. An error tells the
    // client.
    listing.end = status == Status::pending ? Status::insufficient_resources : status;
  }
  advance(now, pushed->open);
  return Taken::yes;
}

}  // namespace longhaul::smb::smb2
