// SPDX-License-Identifier: Apache-2.0
// See far_metadata.h.
#include "proxy/modules/smb/smb2/far_metadata.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
namespace {

std::size_t cost_of(const std::string& name) { return sizeof(std::string) + name.size(); }

Slice name_of_listing(MessageId generation) {
  std::byte bytes[sizeof(generation)];
  store_le(bytes, generation);
  return Slice::copy_of(bytes);
}

}  // namespace

Taken FarMetadata::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (const auto* expect = std::get_if<Expect>(&message)) {
    if (expect->command != static_cast<std::uint16_t>(Command::query_info)) return Taken::yes;
    if (expected_.size() >= kMostOpening || expect->request.size() != kQuestionKeyBytes) {
      side_.out().abort();  // not sent by our near half
      return Taken::yes;
    }
    std::vector<Slice>& questions = expected_[expect->message];
    if (questions.size() < kMostQuestions) questions.push_back(expect->request);
    return Taken::yes;
  }
  if (const auto* enumerate = std::get_if<Enumerate>(&message)) {
    if (opening_.size() >= kMostOpening || listings_.size() >= kMostListings ||
        beginning_.size() >= kMostOpening || enumerate->pattern.size() >= kMostPatternBytes) {
      side_.out().abort();  // not sent by our near half
      return Taken::yes;
    }
    if (enumerate->open == OpenKey{}) {
      opening_[enumerate->message] = Listing{.generation = enumerate->message,
                                             .info_class = enumerate->info_class,
                                             .pattern = enumerate->pattern,
                                             .window_bytes = window_bytes()};
      return Taken::yes;
    }
    Listing& listing = listings_[enumerate->open];
    std::vector<std::string> names;
    if (enumerate->all) {
      names = std::move(listing.names);
      // Otherwise the client would get entries again that it had before this listing was tracked.
      if (names.size() < enumerate->served) side_.out().abort();
    } else {
      forget(listing.names);
      if (auto told = told_before_.extract(enumerate->open); !told.empty()) names = std::move(told.mapped());
    }
    for (; names.size() > enumerate->served; names.pop_back()) name_bytes_ -= cost_of(names.back());
    beginning_.erase(listing.generation);
    beginning_.emplace(enumerate->message, enumerate->open);
    listing = Listing{.generation = enumerate->message,
                      .info_class = enumerate->info_class,
                      .pattern = enumerate->pattern,
                      .all = enumerate->all,
                      .window_bytes = enumerate->all ? kRepeatedWindowBytes : window_bytes(),
                      .skip = enumerate->all ? names : std::vector<std::string>{}};
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

// What waits for the line grows old. Names are reduced to about an eighth.
std::uint64_t FarMetadata::window_bytes() const {
  const Surroundings& line = side_.surroundings();
  if (line.line_bytes_per_second == 0) return kWindowBytes;
  const double seconds = std::chrono::duration<double>(line.round_trip).count() + 0.1;
  const double bytes = 8 * seconds * static_cast<double>(line.line_bytes_per_second);
  return static_cast<std::uint64_t>(std::clamp(bytes, double{kRepeatedWindowBytes}, double{kWindowBytes}));
}

Taken FarMetadata::on_request(TimePoint now, const Message& message, const Changes&) {
  // Listing requests always go before those that close the directory.
  if (held_.empty()) return Taken::no;
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    if (request && request->command == Command::close)
      release(now, key_of(request->session, request->tree, request->file));
  }
  return Taken::no;
}

bool FarMetadata::holds(const Message& message) {
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
    // Not of a listing of ours: from here on only the client moves the server's position.
    if (!beginning_.contains(id) && !opening_.contains(id)) erase(key);
  }
  return false;
}

void FarMetadata::release(TimePoint now, const OpenKey& key) {
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

bool FarMetadata::remember(std::vector<std::string>& names, const std::string& name) {
  if (names.size() >= kMostNames || name_bytes_ + cost_of(name) > kMostNameBytes) return false;
  name_bytes_ += cost_of(name);
  names.push_back(name);
  return true;
}

void FarMetadata::forget(std::vector<std::string>& names) {
  for (const std::string& name : names) name_bytes_ -= cost_of(name);
  names.clear();
}

void FarMetadata::erase(const OpenKey& key) {
  const auto found = listings_.find(key);
  if (found == listings_.end()) return;
  forget(found->second.names);
  listings_.erase(found);
}

void FarMetadata::stream_ended(TimePoint now) {
  while (!held_.empty()) release(now, held_.begin()->first);
}

Taken FarMetadata::on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) {
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
    if (listing.all && message.single()) taken = Taken::yes;  // the interim answer, too
    if (each.interim) continue;
    listing.begun = true;
    const Status status = each.element->header.status;
    const auto response = parse_buffer_response(each.element->bytes);
    const Slice buffer = status == Status::success && response ? Slice::copy_of(response->buffer) : Slice{};
    if (listing.all) {
      listed(now, key, listing.generation, status, buffer);
      continue;
    }
    // It goes to the client unchanged; later entries are pushed (after_response).
    const auto entries = parse_listing(listing.info_class, buffer);
    if (status != Status::success || !entries) {
      if (status == Status::success)
        push(key, Command::query_directory, Status::pending, name_of_listing(listing.generation), {});
      erase(key);
      continue;
    }
    for (const ListingEntry& entry : *entries) remember(listing.names, entry.name);
    side_.listed(key, listing.generation, listing.info_class, buffer);
  }
  return taken;
}

// The client has this from the server; later entries are pushed.
bool FarMetadata::begun_with_open(const Element& element, const Pending& request) {
  const auto found = opening_.find(request.id);
  if (found == opening_.end()) return false;
  Listing listing = std::move(found->second);
  opening_.erase(found);
  const OpenKey key = key_of(request.session, request.tree, request.file);
  const auto response = parse_buffer_response(element.bytes);
  if (element.header.status != Status::success || !response || !side_.connection().open(key)) return false;
  const Slice buffer = Slice::copy_of(response->buffer);
  const auto entries = parse_listing(listing.info_class, buffer);
  if (!entries) return false;
  listing.begun = true;
  for (const ListingEntry& entry : *entries) remember(listing.names, entry.name);
  side_.listed(key, listing.generation, listing.info_class, buffer);
  erase(key);
  listings_[key] = std::move(listing);
  return true;
}

// From the server itself, and not for a listing of ours: the client has these, too.
void FarMetadata::told(const Element& element, const Pending& request) {
  const OpenKey key = key_of(request.session, request.tree, request.file);
  const auto response = parse_buffer_response(element.bytes);
  if (element.header.status != Status::success || !response || !side_.connection().open(key)) return;
  if (!side_.surroundings().features.metadata) return;  // the near half does not continue it either
  const auto entries = parse_listing(request.info_class, Slice::copy_of(response->buffer));
  if (!entries) return;
  std::vector<std::string>& names = told_before_[key];
  if (request.lists_afresh) forget(names);
  for (const ListingEntry& entry : *entries) remember(names, entry.name);
}

void FarMetadata::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::closed) continue;
    erase(change.open->key);
    wanting_ids_.erase(change.open->key);
    if (const auto unasked = unwatched_.extract(change.open->key); !unasked.empty())
      ask_not(change.open->key, unasked.mapped());
    if (auto told = told_before_.extract(change.open->key); !told.empty()) forget(told.mapped());
  }
}

void FarMetadata::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (!each.element || each.interim) continue;
    if (each.request.command == Command::query_directory) {
      fetch(now, key_of(each.request.session, each.request.tree, each.request.file));
    }
    if (each.request.command != Command::create) continue;
    const auto found = expected_.find(each.request.id);
    if (found == expected_.end()) continue;
    std::vector<Slice> questions = std::move(found->second);
    expected_.erase(found);
    const auto created = parse_create_response(each.element->bytes);
    if (each.element->header.status != Status::success || !created) continue;
    if (Open* open = side_.connection().open(created->file))
      ask_when_watched(now, *open, std::move(questions));
  }
}

// An answer about something that others may change unnoticed is useless.
void FarMetadata::ask_when_watched(TimePoint now, Open& open, std::vector<Slice> questions) {
  if (!side_.surroundings().features.metadata_relaxed) {
    // A directory's own attributes are part of the listing of its parent.
    const bool own = (open.caching & lease_state::write) && !open.on_behalf;
    const Watching watching = own ? Watching::now : open.directory ? Watching::never : side_.watch(now, open);
    if (watching == Watching::never) return ask_not(open.key, questions);
    if (watching == Watching::later) {
      unwatched_.insert_or_assign(open.key, std::move(questions));
      return;
    }
  }
  for (const Slice& question : questions) ask(now, open, question);
}

void FarMetadata::ask_not(const OpenKey& open, const std::vector<Slice>& questions) {
  for (const Slice& question : questions) push(open, Command::query_info, Status::pending, question, {});
}

void FarMetadata::on_watched(TimePoint now, const Open& open) {
  if (const auto unasked = unwatched_.extract(open.key); !unasked.empty()) {
    if (!open.watched) return ask_not(open.key, unasked.mapped());
    for (const Slice& question : unasked.mapped()) ask(now, open, question);
  }
  if (open.directory) fetch(now, open.key);
}

void FarMetadata::ask(TimePoint now, const Open& open, const Slice& question) {
  auto request = request_of(question.bytes());
  const OpenKey key = open.key;
  bool sent = false;
  if (request && request->output_bytes <= kQuestionBytes && !open.may_be_replayed) {
    request->file = open.file;
    sent = side_.inject(
        now, open.session, open.tree, 1,
        [request](const RequestHead& head) { return build_query_info_request(head, *request); },
        [this, key, question](TimePoint, const Frame&, const Element& answer) {
          // The near half knows complete answers and errors without data; other queries are left to the
          // client.
          const Status status = answer.header.status;
          const auto response = parse_buffer_response(answer.bytes);
          if (status == Status::success && response) {
            push(key, Command::query_info, status, question, Slice::copy_of(response->buffer));
          } else {
            push(key, Command::query_info, has_answer(answer) ? Status::pending : status, question, {});
          }
        });
  }
  if (!sent) push(key, Command::query_info, Status::pending, question, {});
}

void FarMetadata::fetch(TimePoint now, const OpenKey& key) {
  const auto found = listings_.find(key);
  if (found == listings_.end()) return;
  Listing& listing = found->second;
  Open* open = side_.connection().open(key);
  if (!open || !listing.begun || listing.asking || listing.ended) return;
  // A listing that was restarted cannot be left to the server any more.
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
      .output_bytes = std::min(kQuestionBytes, side_.connection().max_transact_bytes())};
  const Slice pattern = listing.pattern;
  const MessageId generation = listing.generation;
  listing.asking = side_.inject_awaited(
      now, open->session, open->tree,
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
    push(key, Command::query_directory, Status::pending, name_of_listing(generation), {});
  }
}

// Nothing was fetched yet, and nothing can be: the server's position is the client's, which continues by
// itself. Waiting for ids could last for ever if the client's window leaves none.
void FarMetadata::give_up(const OpenKey& key) {
  auto listing = listings_.extract(key);
  push(key, Command::query_directory, Status::pending, name_of_listing(listing.mapped().generation), {});
  std::vector<std::string>& told = told_before_[key];
  forget(told);
  told = std::move(listing.mapped().names);
}

void FarMetadata::listed(TimePoint now, const OpenKey& key, MessageId generation, Status status,
                         const Slice& buffer) {
  const auto found = listings_.find(key);
  // Restarted meanwhile: the new start has reset the position that this answer moved.
  if (found == listings_.end() || found->second.generation != generation) return;
  Listing& listing = found->second;
  listing.asking = false;
  if (status != Status::success) {
    listing.ended = true;
    push(key, Command::query_directory, status, name_of_listing(generation), {});
    return;
  }
  const auto entries = parse_listing(listing.info_class, buffer);
  if (entries) side_.listed(key, generation, listing.info_class, buffer);
  if (!entries) {
    listing.ended = true;
    push(key, Command::query_directory, Status::pending, name_of_listing(generation), {});
    return;
  }
  ListingQueue left;
  for (const ListingEntry& entry : *entries) {
    if (std::binary_search(listing.skip.begin(), listing.skip.end(), entry.name)) continue;
    left.add(entry.bytes);
    remember(listing.names, entry.name);
  }
  if (!left.empty()) {
    const auto part = left.take(kMaxAttachedBytes, false);
    listing.pushed_bytes += part.buffer.size();
    push(key, Command::query_directory, Status::success, name_of_listing(generation),
         Slice::copy_of(part.buffer));
  }
  fetch(now, key);
}

void FarMetadata::push(const OpenKey& key, Command command, Status status, Slice request, Slice response) {
  side_.counters().ahead_bytes += response.size();
  Answer answer{.open = key,
                .command = static_cast<std::uint16_t>(command),
                .status = static_cast<std::uint32_t>(status),
                .request = std::move(request),
                .response_bytes = static_cast<std::uint32_t>(response.size())};
  side_.out().tell(answer, std::move(response));
}

void FarMetadata::on_ids_freed(TimePoint now) {
  for (const OpenKey& key : std::exchange(wanting_ids_, {})) fetch(now, key);
}

}  // namespace longhaul::smb::smb2
