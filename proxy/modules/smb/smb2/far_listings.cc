// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/far_listings.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/pushed_answer.h"

namespace longhaul::smb::smb2 {

Taken FarListings::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (const auto* enumerate = std::get_if<Enumerate>(&message)) {
    if (opening_.size() >= kMostOpening || listings_.size() >= kMostListings ||
        beginning_.size() >= kMostOpening || enumerate->pattern.size() >= kMostPatternBytes) {
      side_.out().abort();  // not sent by our near half
      return Taken::yes;
    }
    if (enumerate->open == OpenKey{}) {
      opening_[id_of(enumerate->message)] = Listing{.generation = id_of(enumerate->message),
                                                    .info_class = enumerate->info_class,
                                                    .pattern = enumerate->pattern,
                                                    .window_bytes = window_bytes()};
      return Taken::yes;
    }
    Listing& listing = listings_[enumerate->open];
    ListedNames::List names;
    if (enumerate->all) {
      names = std::move(listing.names);
      // Otherwise the client would get entries again that it had before this listing was tracked.
      if (names.size() < enumerate->served) side_.out().abort();
    } else {
      names_.forget(listing.names);
      if (auto told = told_before_.extract(enumerate->open); !told.empty()) names = std::move(told.mapped());
    }
    names_.shorten(names, enumerate->served);
    beginning_.erase(listing.generation);
    beginning_.emplace(id_of(enumerate->message), enumerate->open);
    listing = Listing{.generation = id_of(enumerate->message),
                      .info_class = enumerate->info_class,
                      .pattern = enumerate->pattern,
                      .all = enumerate->all,
                      .window_bytes = enumerate->all ? kRepeatedWindowBytes : window_bytes(),
                      .skip = enumerate->all ? names : ListedNames::List{}};
    listing.names = std::move(names);
    std::sort(listing.skip.begin(), listing.skip.end());
    return Taken::yes;
  }
  if (const auto* more = std::get_if<More>(&message)) {
    const auto found = listings_.find(more->open);
    if (found != listings_.end()) {
      found->second.left_bytes += more->bytes;
      found->second.window_bytes = std::min(found->second.window_bytes * 2, window_bytes());
      fetch(now, more->open);
    }
    return Taken::yes;
  }
  return Taken::no;
}

// Entries that wait for the line become old. Names are reduced to about an eighth.
std::uint64_t FarListings::window_bytes() const {
  const Surroundings& line = side_.surroundings();
  if (line.line_bytes_per_second == 0) return kWindowBytes;
  const double seconds = std::chrono::duration<double>(line.round_trip).count() + 0.1;
  const double bytes = 8 * seconds * static_cast<double>(line.line_bytes_per_second);
  return static_cast<std::uint64_t>(std::clamp(bytes, double{kRepeatedWindowBytes}, double{kWindowBytes}));
}

Taken FarListings::on_request(TimePoint now, const Message& message, const Changes&) {
  // Listing requests are always sent before those that close the directory.
  if (held_.empty()) return Taken::no;
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    if (request && request->command == Command::close)
      release(now, key_of(request->session, request->tree, request->file));
  }
  return Taken::no;
}

bool FarListings::holds(const Message& message) {
  if (asked_.empty() && listings_.empty()) return false;
  for (const Element& element : message.elements) {
    if (element.header.command != Command::query_directory) continue;
    const MessageId id = element.header.message_id;
    const Pending* request = side_.connection().pending(id);
    if (!request) continue;
    const OpenKey key = key_of(request->session, request->tree, request->file);
    if (message.single() && asked_.contains(key)) {
      held_bytes_ += message.frame.bytes.size();
      held_[key].push_back(kept(message));
      return true;
    }
    // Not part of a listing of ours: from now on only the client moves the server's position.
    if (!beginning_.contains(id) && !opening_.contains(id)) erase(key);
  }
  return false;
}

void FarListings::release(TimePoint now, const OpenKey& key) {
  asked_.erase(key);
  const auto found = held_.find(key);
  if (found == held_.end()) return;
  const std::deque<Message> held = std::move(found->second);
  held_.erase(found);
  for (const Message& message : held) {
    held_bytes_ -= message.frame.bytes.size();
    side_.send(now, message);
  }
}

void FarListings::erase(const OpenKey& key) {
  const auto found = listings_.find(key);
  if (found == listings_.end()) return;
  names_.forget(found->second.names);
  listings_.erase(found);
}

void FarListings::stream_ended(TimePoint now) {
  while (!held_.empty()) release(now, held_.begin()->first);
}

Taken FarListings::on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) {
  Taken taken = Taken::no;
  for (const Connection::Answered& each : outcome.answered) {
    const auto begins = each.element ? beginning_.find(each.request.id) : beginning_.end();
    if (begins == beginning_.end()) {
      if (each.element && !each.interim && each.request.command == Command::query_directory &&
          !begun_with_open(*each.element, each.request))
        told(*each.element, each.request);
      continue;
    }
    const OpenKey key = begins->second;
    if (!each.interim) beginning_.erase(begins);
    const auto found = listings_.find(key);
    if (found == listings_.end()) continue;
    Listing& listing = found->second;
    if (listing.all && message.single()) taken = Taken::yes;  // including the interim response
    if (each.interim) continue;
    listing.begun = true;
    const Status status = each.element->header.status;
    const auto response = parse_buffer_response(each.element->bytes);
    const Slice buffer = status == Status::success && response ? Slice::copy_of(response->buffer) : Slice{};
    if (listing.all) {
      listed(now, key, listing.generation, status, buffer);
      continue;
    }
    // It is sent to the client unchanged; later entries are pushed (after_response).
    const auto entries = parse_listing(listing.info_class, buffer);
    if (status != Status::success || !entries) {
      if (status == Status::success) push(key, listing.generation, Status::pending, {});
      erase(key);
      continue;
    }
    for (const ListingEntry& entry : *entries) names_.add(listing.names, entry.name);
    side_.listed(key, listing.generation, listing.info_class, buffer);
  }
  return taken;
}

// The client receives this from the server; later entries are pushed, or that none will be (fetch()).
bool FarListings::begun_with_open(const Element& element, const Pending& request) {
  const auto found = opening_.find(request.id);
  if (found == opening_.end()) return false;
  Listing listing = std::move(found->second);
  opening_.erase(found);
  const OpenKey key = key_of(request.session, request.tree, request.file);
  const auto response = parse_buffer_response(element.bytes);
  if (element.header.status != Status::success || !response) return false;
  const Slice buffer = Slice::copy_of(response->buffer);
  const auto entries = parse_listing(listing.info_class, buffer);
  if (!entries) return false;
  listing.begun = true;
  for (const ListingEntry& entry : *entries) names_.add(listing.names, entry.name);
  side_.listed(key, listing.generation, listing.info_class, buffer);
  erase(key);
  listings_[key] = std::move(listing);
  return true;
}

// From the server itself, and not part of a listing of ours: the client receives these, too.
void FarListings::told(const Element& element, const Pending& request) {
  const OpenKey key = key_of(request.session, request.tree, request.file);
  const auto response = parse_buffer_response(element.bytes);
  if (element.header.status != Status::success || !response || !side_.connection().open(key)) return;
  if (!side_.surroundings().features.metadata) return;  // the near half does not continue it either
  const auto entries = parse_listing(request.info_class, Slice::copy_of(response->buffer));
  if (!entries) return;
  ListedNames::List& names = told_before_[key];
  if (request.lists_afresh) names_.forget(names);
  for (const ListingEntry& entry : *entries) names_.add(names, entry.name);
}

void FarListings::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::closed) continue;
    erase(change.open->key);
    wanting_ids_.erase(change.open->key);
    if (auto told = told_before_.extract(change.open->key); !told.empty()) names_.forget(told.mapped());
  }
}

void FarListings::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (!each.element || each.interim || each.request.command != Command::query_directory) continue;
    fetch(now, key_of(each.request.session, each.request.tree, each.request.file));
  }
}

void FarListings::on_watched(TimePoint now, const Open& open) {
  if (open.directory) fetch(now, open.key);
}

void FarListings::fetch(TimePoint now, const OpenKey& key) {
  const auto found = listings_.find(key);
  if (found == listings_.end()) return;
  Listing& listing = found->second;
  Open* open = side_.connection().open(key);
  if (!listing.begun || listing.asking || listing.ended) return;
  if (!open) {  // one too many here, where earlier CLOSEs arrive later
    push(key, listing.generation, Status::pending, {});
    return erase(key);
  }
  // A listing that was restarted can no longer be continued by the server.
  if (!side_.surroundings().features.metadata_relaxed && !listing.all) {
    const Watching watching = side_.watch(now, *open);
    if (watching == Watching::later) return;
    if (watching == Watching::never && listing.pushed_bytes == 0) return give_up(key);
  }
  if (listing.pushed_bytes - std::min(listing.pushed_bytes, listing.left_bytes) >= listing.window_bytes)
    return;
  const QueryDirectoryRequest question{
      .info_class = listing.info_class,
      .file = open->file,
      .output_bytes = std::min(kQuestionBytes, side_.connection().negotiated().max_transact_bytes())};
  const Slice pattern = listing.pattern;
  const MessageId generation = listing.generation;
  listing.asking = side_.server().inject_awaited(
      open->session, open->tree,
      [question, pattern](const RequestHead& head) {
        QueryDirectoryRequest request = question;
        request.pattern = pattern.bytes();
        return build_query_directory_request(widening(head), request);
      },
      [this, key, generation](TimePoint later, const Frame&, const Element& answer) {
        release(later, key);
        const auto response = parse_buffer_response(answer.bytes);
        const bool good = answer.header.status == Status::success && response;
        listed(later, key, generation, answer.header.status,
               good ? Slice::copy_of(response->buffer) : Slice{});
      });
  if (listing.asking) {
    wanting_ids_.erase(key);
  } else {
    wanting_ids_.insert(key);
  }
  if (listing.asking) {
    asked_.insert(key);
  } else if (listing.pushed_bytes == 0 && !listing.all) {
    give_up(key);
  } else if (side_.connection().sessions().any_untouchable()) {
    listing.ended = true;
    push(key, generation, Status::pending, {});
  }
}

// Nothing was fetched yet, and nothing can be: the server's position is the client's, which continues on its
// own. Waiting for ids could last for ever if the client's window leaves none.
void FarListings::give_up(const OpenKey& key) {
  auto listing = listings_.extract(key);
  push(key, listing.mapped().generation, Status::pending, {});
  ListedNames::List& told = told_before_[key];
  names_.forget(told);
  told = std::move(listing.mapped().names);
}

void FarListings::listed(TimePoint now, const OpenKey& key, MessageId generation, Status status,
                         const Slice& buffer) {
  const auto found = listings_.find(key);
  // Restarted meanwhile: the restart has reset the position that this response moved.
  if (found == listings_.end() || found->second.generation != generation) return;
  Listing& listing = found->second;
  listing.asking = false;
  if (status != Status::success) {
    listing.ended = true;
    push(key, generation, status, {});
    return;
  }
  const auto entries = parse_listing(listing.info_class, buffer);
  if (entries) side_.listed(key, generation, listing.info_class, buffer);
  if (!entries) {
    listing.ended = true;
    push(key, generation, Status::pending, {});
    return;
  }
  ListingQueue left;
  for (const ListingEntry& entry : *entries) {
    if (std::binary_search(listing.skip.begin(), listing.skip.end(), entry.name)) continue;
    left.add(entry.bytes);
    names_.add(listing.names, entry.name);
  }
  if (!left.empty()) {
    const auto part = left.take(kMaxAttachedBytes, false);
    listing.pushed_bytes += part.buffer.size();
    push(key, generation, Status::success, Slice::copy_of(part.buffer));
  }
  fetch(now, key);
}

void FarListings::push(const OpenKey& key, MessageId generation, Status status, Slice entries) {
  std::byte name[sizeof(generation)];
  store_le(name, generation.number());
  push_answer(side_, key, Command::query_directory, status, Slice::copy_of(name), std::move(entries));
}

void FarListings::on_ids_freed(TimePoint now) {
  for (const OpenKey& key : std::exchange(wanting_ids_, {})) fetch(now, key);
}

}  // namespace longhaul::smb::smb2
