// SPDX-License-Identifier: Apache-2.0
// See near_metadata.h.
#include "proxy/modules/smb/smb2/near_metadata.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
namespace {

using namespace std::chrono_literals;
using modules::Duration;

// Without an oplock an answer is a snapshot: good for as long as it would have been on its way.
constexpr Duration kLeastSnapshotLife = 100ms;

// Where FilePositionInformation and FileAllInformation have the position ([MS-FSCC] 2.4.35 and 2.4.2).
std::optional<std::size_t> position_in(std::uint8_t info_class) {
  if (info_class == file_info::position) return 0;
  if (info_class == file_info::all) return 80;
  return std::nullopt;
}

Slice with_position(const Slice& info, std::size_t at, std::uint64_t position) {
  if (info.size() < at + sizeof(position)) return info;
  Buffer copy;
  append(copy, info.bytes());
  store_le(copy.data() + at, position);
  return Slice::copy_of(copy);
}

QuestionHabits::Kind kind_of(const CreateRequest& request) {
  if (request.options & create_options::directory_file) return QuestionHabits::Kind::directory;
  constexpr std::uint32_t kData = access::read_data | access::write_data | access::append_data |
                                  access::execute | access::generic_all | access::generic_read |
                                  access::generic_write | access::generic_execute | access::maximum_allowed;
  return request.desired_access & kData ? QuestionHabits::Kind::data : QuestionHabits::Kind::attributes;
}

Slice key_slice(const std::string& question) { return Slice::copy_of(as_bytes(question)); }

// What programs ask of most files; one open that is not asked so ends each of these. The questions of one
// size of answer only, which question_of() calls the same whatever room there is.
QuestionHabits usual_questions() {
  QuestionHabits habits;
  const auto usual = [&](QuestionHabits::Kind kind, InfoType type, std::uint8_t info_class) {
    QueryInfoRequest request;
    request.type = type;
    request.info_class = info_class;
    request.output_bytes = ~0u;
    if (const auto question = question_of(request))
      habits.asked(kind, std::string(as_text(question->bytes())));
  };
  using Kind = QuestionHabits::Kind;
  usual(Kind::data, InfoType::file, file_info::standard);
  usual(Kind::data, InfoType::file, file_info::basic);
  usual(Kind::data, InfoType::file, file_info::network_open);
  usual(Kind::data, InfoType::file_system, fs_info::full_size);
  usual(Kind::attributes, InfoType::file, file_info::network_open);
  usual(Kind::attributes, InfoType::file, file_info::basic);
  return habits;
}

}  // namespace

CloseResponse closed_as(const Open& open, std::uint16_t flags) {
  if (!(flags & kClosePostQueryAttributes)) return {};
  return {.flags = kClosePostQueryAttributes,
          .times = open.times,
          .allocation_bytes = open.allocation_bytes,
          .end_of_file = open.end_of_file,
          .file_attributes = open.file_attributes};
}

NearMetadata::NearMetadata(NearSide& side) : side_(side), habits_(usual_questions()) {}

// ---- requests

void NearMetadata::before_request(TimePoint, const Message& message, const Changes& changes) {
  const bool writes = message.single() && message.header().command == Command::write;
  const Cause cause = writes ? Cause::write : Cause::other;
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::voided) voided(*change.open, cause);
  }
  if (message.single()) follow_position(message);
}

// Writing may move it or not, as the server likes.
void NearMetadata::follow_position(const Message& message) {
  const Command command = message.header().command;
  if (command != Command::set_info && command != Command::write) return;
  const Pending* request = side_.connection().pending(message.header().message_id);
  const Open* open = request ? side_.connection().open(request->file) : nullptr;
  const auto file = open ? files_.find(open->key) : files_.end();
  if (file == files_.end()) return;
  if (command == Command::write) {
    file->second.position.reset();
  } else if (request->info_type == InfoType::file && request->info_class == file_info::position) {
    const auto set = parse_set_info_request(message.first().bytes);
    if (set && set->buffer.size() >= 8) file->second.position = load_le<std::uint64_t>(set->buffer, 0);
  }
}

Taken NearMetadata::on_request(TimePoint now, const Message& message, const Changes&) {
  if (!message.single()) return Taken::no;
  switch (message.header().command) {
    case Command::create:
      before_create(message);
      return Taken::no;
    case Command::query_info:
      return query_info(now, message);
    case Command::flush:
      before_flush(message);
      return Taken::no;
    case Command::close:
      return close(now, message);
    default:
      return Taken::no;
  }
}

void NearMetadata::before_create(const Message& message) {
  if (!side_.surroundings().features.smb_metadata) return;
  const Header& header = message.header();
  const Tree* tree = side_.connection().tree(header.session_id, header.tree_id);
  const auto request = parse_create_request(message.first().bytes);
  if (!tree || tree->type != ShareType::disk || !request || request->durable == Durable::reconnect ||
      request->durable == Durable::reconnect_v2) {
    return;
  }
  Opening opening{.kind = kind_of(*request), .questions = {}};
  opening.questions = habits_.likely(opening.kind);
  // The far half asks without waiting for what was promised, so the free space would lack that.
  if (side_.has_promised()) {
    std::erase_if(opening.questions, [](const std::string& question) {
      const auto parsed = request_of(as_bytes(question));
      return !parsed || parsed->type == InfoType::file_system;
    });
  }
  for (const std::string& question : opening.questions) {
    side_.out().tell(Expect{.message = header.message_id,
                            .command = static_cast<std::uint16_t>(Command::query_info),
                            .request = key_slice(question)});
  }
  opening_.emplace(header.message_id, std::move(opening));
}

void NearMetadata::opened_ahead(const Message& create, const std::vector<Slice>& questions) {
  const auto request = parse_create_request(create.first().bytes);
  if (!request) return;
  Opening opening{.kind = kind_of(*request), .questions = {}};
  for (const Slice& question : questions) opening.questions.emplace_back(as_text(question.bytes()));
  opening_.insert_or_assign(create.header().message_id, std::move(opening));
}

void NearMetadata::before_flush(const Message& message) {
  const Pending* request = side_.connection().pending(message.header().message_id);
  const Open* open = request ? side_.connection().open(request->file) : nullptr;
  const auto file = open ? files_.find(open->key) : files_.end();
  if (file == files_.end()) return;
  flushing_.insert_or_assign(message.header().message_id,
                             Flushing{.open = open->key, .version = file->second.version});
}

void NearMetadata::opened(const Open& open, MessageId by) {
  const auto found = opening_.find(by);
  if (found == opening_.end()) return;
  File& file = files_[open.key];
  file = File{.kind = found->second.kind, .pushed = found->second.questions};
  if (open.disk_file) file.position = 0;
  for (const std::string& question : file.pushed) file.answers.emplace(question, Known{});
  opening_.erase(found);
}

Taken NearMetadata::query_info(TimePoint now, const Message& message) {
  const auto request = parse_query_info_request(message.first().bytes);
  const auto question = request ? question_of(*request) : std::nullopt;
  const Open* open = question ? side_.connection().open(request->file) : nullptr;
  const auto file = open ? files_.find(open->key) : files_.end();
  const Header& header = message.header();
  if (file == files_.end() || open->session != header.session_id || open->tree != header.tree_id)
    return Taken::no;
  const std::string key(as_text(question->bytes()));
  if (file->second.asked.insert(key).second) habits_.asked(file->second.kind, key);

  const auto found = file->second.answers.find(key);
  if (found != file->second.answers.end() && !found->second.voided) {
    Known& known = found->second;
    if (!known.here) {
      known.waiting.push_back(message);
      ++waiting_;
      return Taken::yes;
    }
    const bool of_file = request->type != InfoType::file_system;
    if (good(now, *open, known, of_file)) {
      answer(now, message, known);
      if (!of_file || !(open->caching & lease_state::read)) file->second.answers.erase(found);
      return Taken::yes;
    }
    file->second.answers.erase(found);
  }
  if (side_.surroundings().features.smb_metadata) {
    asked_.insert_or_assign(header.message_id,
                            Asked{.open = open->key, .question = key, .version = file->second.version});
  }
  return Taken::no;
}

bool NearMetadata::good(TimePoint now, const Open& open, const Known& known, bool of_file) const {
  if (open.break_pending) return false;
  const modules::Duration age = now - known.came;
  if (of_file && (open.caching & lease_state::write)) return true;
  if (of_file && (open.caching & lease_state::read)) return age <= kSharedLife;
  return age <= std::max(kLeastSnapshotLife, 2 * side_.surroundings().round_trip);
}

void NearMetadata::answer(TimePoint now, const Message& request, const Known& known) {
  const Header header = answer_to(request.header(), known.status);
  modules::Counters& counters = side_.counters();
  ++counters.metadata_answers;
  counters.ahead_used_bytes += known.response.size();
  Slice response = known.response;
  if (const Pending* pending = side_.connection().pending(header.message_id)) {
    const auto file = files_.find(key_of(pending->session, pending->tree, pending->file));
    const auto at = pending->info_type == InfoType::file ? position_in(pending->info_class) : std::nullopt;
    if (at && file != files_.end() && file->second.position) {
      response = with_position(response, *at, *file->second.position);
    }
  }
  side_.answer(now, header.message_id,
               known.status == Status::success ? build_buffer_response(header, response.bytes())
                                               : build_error_response(header));
}

// The server may keep the handle as long as it likes, as far as others are concerned: they are told by a
// break. So a CLOSE may be under way while the client goes on; what it does next with that name waits at the
// far half.
Taken NearMetadata::close(TimePoint now, const Message& message) {
  if (!side_.surroundings().features.smb_metadata) return Taken::no;
  const auto request = parse_close_request(message.first().bytes);
  const Open* open = request ? side_.connection().open(request->file) : nullptr;
  const auto file = open ? files_.find(open->key) : files_.end();
  const Header& header = message.header();
  if (file == files_.end() || open->session != header.session_id || open->tree != header.tree_id)
    return Taken::no;
  const bool plain = open->disk_file && !open->durable && !open->reconnected && !open->replayed &&
                     !open->locked && !(open->options & create_options::delete_on_close);
  if (!plain || !(open->caching & lease_state::handle) || open->break_pending || file->second.unsettled ||
      file->second.unflushed)
    return Taken::no;
  if (file->second.changed && request->flags & kClosePostQueryAttributes) return Taken::no;
  for (const auto& [question, known] : file->second.answers) {
    if (!known.waiting.empty()) return Taken::no;
  }
  side_.out().tell(Promised{.open = open->key, .message = header.message_id});
  const CloseResponse response = closed_as(*open, request->flags);
  closed(now, *open);
  closing_.emplace(header.message_id, Closing{.file = open->file, .lease = open->lease});
  side_.pass_on(now, message);
  ++side_.counters().metadata_answers;
  side_.answer(now, header.message_id, build_close_response(answer_to(header, Status::success), response),
               NearSide::Told::yes);
  return Taken::yes;
}

// ---- answers

void NearMetadata::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind == Change::Kind::opened) opened(*change.open, change.by);
    if (change.kind == Change::Kind::broken) voided(*change.open, Cause::other);
    if (change.kind == Change::Kind::closed) closed(now, *change.open);
  }
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim) continue;
    if (each.request.command == Command::read && each.element) {
      const Open* open = side_.connection().open(each.request.file);
      const Status status = each.element->header.status;
      const auto read = parse_read_response(each.element->bytes);
      const auto got = status == Status::success && read ? static_cast<std::uint32_t>(read->data.size()) : 0;
      if (open && (got != 0 || status == Status::end_of_file))
        has_read(*open, each.request.offset, each.request.length, got);
    }
    if (!each.element) continue;
    opening_.erase(each.request.id);
    if (const auto flushing = flushing_.extract(each.request.id); !flushing.empty()) {
      // What was done before it is done at the server, and its errors are told: this answer came behind them.
      const auto flushed = files_.find(flushing.mapped().open);
      if (flushed != files_.end() && flushed->second.version == flushing.mapped().version &&
          each.element->header.status == Status::success) {
        flushed->second.unflushed = false;
      }
    }
    const auto found = asked_.find(each.request.id);
    if (found == asked_.end()) continue;
    const Asked asked = std::move(found->second);
    asked_.erase(found);
    const auto file = files_.find(asked.open);
    const Open* open = side_.connection().open(asked.open);
    const auto response = parse_buffer_response(each.element->bytes);
    const bool leased = open && (open->caching & lease_state::read) && !open->break_pending;
    if (file == files_.end() || !leased || file->second.version != asked.version || !response ||
        each.element->header.status != Status::success || each.request.info_type == InfoType::file_system) {
      continue;
    }
    file->second.answers.insert_or_assign(
        asked.question,
        Known{.here = true, .response = Slice::copy_of(response->buffer), .came = now, .waiting = {}});
  }
}

void NearMetadata::has_read(const Open& open, std::uint64_t offset, std::uint32_t asked, std::uint32_t got) {
  const auto file = files_.find(open.key);
  if (file == files_.end()) return;
  const std::uint64_t reached = offset + got;
  if (got != 0) file->second.position = reached;
  if (open.caching & lease_state::write) return;  // nobody else moves the end
  const bool ended = got < asked;
  if (file->second.changed) {
    if (ended) forget_answers(open.name);  // they may have the end that it had before
  } else if ((got != 0 && reached > open.end_of_file) || (ended && reached < open.end_of_file)) {
    voided(open, Cause::other);
  }
}

Taken NearMetadata::on_response(TimePoint, const Message& message, const Connection::Outcome& outcome) {
  return breaks_closed(message) || correct_position(message, outcome) ? Taken::yes : Taken::no;
}

bool NearMetadata::correct_position(const Message& message, const Connection::Outcome& outcome) {
  if (!message.single() || outcome.answered.size() != 1 || side_.connection().any_untouchable()) return false;
  const Connection::Answered& answered = outcome.answered.front();
  const Pending& request = answered.request;
  if (!answered.element || answered.interim || request.command != Command::query_info) return false;
  const auto at = request.info_type == InfoType::file ? position_in(request.info_class) : std::nullopt;
  const auto file = files_.find(key_of(request.session, request.tree, request.file));
  if (!at || file == files_.end() || !file->second.position) return false;
  const Header& header = message.header();
  const auto response = parse_buffer_response(message.first().bytes);
  if (header.status != Status::success || !response) return false;
  const Slice corrected = with_position(Slice::copy_of(response->buffer), *at, *file->second.position);
  side_.out().to_lan(build_buffer_response(header, corrected.bytes()));
  return true;
}

// A break that crossed a CLOSE: the client has closed the file, and the CLOSE is the acknowledgement.
bool NearMetadata::breaks_closed(const Message& message) {
  if (closing_.empty() || !message.single() || !message.header().is_unsolicited()) return false;
  const auto notification = parse_break(message.first().bytes);
  if (!notification) return false;
  const auto* oplock = std::get_if<OplockBreak>(&*notification);
  const auto* lease = std::get_if<LeaseBreakNotification>(&*notification);
  if (lease && !side_.connection().opens_of(lease->key).empty()) return false;
  return std::any_of(closing_.begin(), closing_.end(), [&](const auto& each) {
    return (oplock && each.second.file == oplock->file) || (lease && each.second.lease == lease->key);
  });
}

Taken NearMetadata::on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  if (const auto* kept = std::get_if<Kept>(&message)) {
    if (closing_.erase(kept->message) == 0) return Taken::no;
    // The client believes the file closed. If it is not, only a reset makes that true.
    if (Status{kept->status} != Status::success) side_.out().abort();
    return Taken::yes;
  }
  if (const auto* taken_back = std::get_if<Break>(&message)) {
    if (const Open* open = side_.connection().open(taken_back->open)) voided(*open, Cause::other);
    return Taken::no;
  }
  if (const auto* pushed = std::get_if<Answer>(&message)) {
    if (pushed->command != static_cast<std::uint16_t>(Command::query_info)) return Taken::no;
    came(now, *pushed, attached);
    return Taken::yes;
  }
  return Taken::no;
}

void NearMetadata::came(TimePoint now, const Answer& pushed, const Slice& response) {
  side_.counters().ahead_bytes += response.size();
  const auto file = files_.find(pushed.open);
  if (file == files_.end()) return;
  const auto found = file->second.answers.find(std::string(as_text(pushed.request.bytes())));
  if (found == file->second.answers.end() || found->second.here) return;
  Known known = std::move(found->second);
  file->second.answers.erase(found);
  waiting_ -= known.waiting.size();
  known.here = true;
  known.status = Status{pushed.status};
  known.response = response;
  known.came = now;
  const Open* open = side_.connection().open(pushed.open);
  // Who waits asked before anything voided it.
  const bool served = !known.waiting.empty();
  for (const Message& request : known.waiting) {
    if (known.status == Status::pending) {
      side_.pass_on(now, request);
    } else {
      answer(now, request, known);
    }
  }
  if (known.status == Status::pending || known.voided || !open) return;
  const bool again = open->caching & lease_state::read;
  const auto question = request_of(pushed.request.bytes());
  if (served && (!again || !question || question->type == InfoType::file_system)) return;
  known.waiting.clear();
  file->second.answers.emplace(std::string(as_text(pushed.request.bytes())), std::move(known));
}

// The file, or the disk, is not any more what it was when it was asked about.
void NearMetadata::voided(const Open& open, Cause cause) {
  for (const Open* same : side_.connection().opens_of(open.name)) {
    const auto file = files_.find(same->key);
    if (file == files_.end()) continue;
    file->second.changed = true;
    (cause == Cause::write ? file->second.unflushed : file->second.unsettled) = true;
  }
  forget_answers(open.name);
}

// Those about the files of this name, and about the disk.
void NearMetadata::forget_answers(const FileName& name) {
  const auto forget = [](File& file, auto&& which) {
    for (auto each = file.answers.begin(); each != file.answers.end();) {
      if (!which(each->first)) {
        ++each;
      } else if (each->second.here) {
        each = file.answers.erase(each);
      } else {
        (each++)->second.voided = true;
      }
    }
  };
  for (const Open* same : side_.connection().opens_of(name)) {
    const auto file = files_.find(same->key);
    if (file == files_.end()) continue;
    ++file->second.version;
    forget(file->second, [](const std::string&) { return true; });
  }
  for (auto& [key, file] : files_) {
    forget(file, [](const std::string& question) {
      const auto request = request_of(as_bytes(question));
      return !request || request->type == InfoType::file_system;
    });
  }
}

void NearMetadata::closed(TimePoint now, const Open& open) {
  const auto found = files_.find(open.key);
  if (found == files_.end()) return;
  File& file = found->second;
  for (const std::string& question : file.pushed) {
    if (!file.asked.contains(question)) habits_.in_vain(file.kind, question);
  }
  std::vector<Message> waiting;
  for (auto& [question, known] : file.answers) {
    std::move(known.waiting.begin(), known.waiting.end(), std::back_inserter(waiting));
  }
  waiting_ -= waiting.size();
  files_.erase(found);
  for (const Message& request : waiting) side_.pass_on(now, request);  // the server says that it is closed
}

}  // namespace longhaul::smb::smb2
