// SPDX-License-Identifier: Apache-2.0
// The effects of the server's and the twin's responses, and when stored ones become void; see
// near_metadata.h.
#include "proxy/modules/smb/smb2/near_metadata.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {

void NearMetadata::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind == Change::Kind::opened) opened(*change.open, change.by);
    if (change.kind == Change::Kind::broken) change.open->changed();
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
    openings_.answered(number_of(each.request.id));
    if (const auto flushing = flushing_.extract(each.request.id); !flushing.empty()) {
      // Earlier changes are completed at the server, and their errors reported: this response came after
      // them.
      const auto flushed = files_.find(flushing.mapped().open);
      const Open* open = side_.connection().open(flushing.mapped().open);
      const ChangesSince& sent = flushing.mapped().sent;
      if (flushed != files_.end() && open && !sent.any(*open) &&
          each.element->header.status == Status::success)
        flushed->second.since.flushed(sent);
    }
    // A server may delay the update of a file's times after WRITEs until a FLUSH.
    if (each.request.command == Command::flush)
      if (const Open* open = side_.connection().open(each.request.file)) open->doubted();
    const auto found = asked_.find(each.request.id);
    if (found == asked_.end()) continue;
    const Asked asked = std::move(found->second);
    asked_.erase(found);
    const auto file = files_.find(asked.open);
    const Open* open = side_.connection().open(asked.open);
    const auto response = parse_buffer_response(each.element->bytes);
    const bool leased = open && (open->caching & lease_state::read || open->watched) && !open->break_pending;
    if (file == files_.end() || !leased || version_of(*open, asked.question) != asked.version || !response ||
        each.element->header.status != Status::success || each.request.info_type == InfoType::file_system) {
      continue;
    }
    const KnownAnswer* known = file->second.answers.find(asked.question);
    if (known && !known->here) continue;  // it will arrive again
    file->second.answers.keep(asked.question, KnownAnswer{.here = true,
                                                          .version = asked.version,
                                                          .response = Slice::copy_of(response->buffer),
                                                          .came = now,
                                                          .waiting = {}});
  }
}

void NearMetadata::has_read(const Open& open, std::uint64_t offset, std::uint32_t asked, std::uint32_t got) {
  const auto file = files_.find(open.key);
  if (file == files_.end()) return;
  const std::uint64_t reached = offset + got;
  if (got != 0) file->second.position.set(reached);
  if (open.caching & lease_state::write) return;  // no other client moves the end
  const bool ended = got < asked;
  if (file->second.since.any(open)) {
    if (ended) open.doubted();  // stored responses may contain the previous end
  } else if ((got != 0 && reached > open.end_of_file) || (ended && reached < open.end_of_file)) {
    open.changed();
  }
}

Taken NearMetadata::on_response(TimePoint, const Message& message, const Connection::Outcome& outcome) {
  return closing_.acknowledge(message, side_.connection()) || correct_position(message, outcome) ? Taken::yes
                                                                                                 : Taken::no;
}

bool NearMetadata::correct_position(const Message& message, const Connection::Outcome& outcome) {
  if (!message.single() || outcome.answered.size() != 1 || side_.connection().sessions().any_untouchable())
    return false;
  const Connection::Answered& answered = outcome.answered.front();
  const Pending& request = answered.request;
  if (!answered.element || answered.interim || request.command != Command::query_info) return false;
  const auto file = files_.find(key_of(request.session, request.tree, request.file));
  const auto response = parse_buffer_response(message.first().bytes);
  if (file == files_.end() || message.header().status != Status::success || !response) return false;
  const auto corrected = file->second.position.corrected(request, response->buffer);
  if (corrected) side_.out().to_lan(build_buffer_response(message.header(), corrected->bytes()));
  return corrected.has_value();
}

Taken NearMetadata::on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  if (const auto* kept = std::get_if<Kept>(&message)) {
    if (!closing_.finished(id_of(kept->message))) return Taken::no;
    // For the client the file is closed. If it is not, only a reset makes that true.
    if (Status{kept->status} != Status::success) side_.out().abort();
    return Taken::yes;
  }
  if (const auto* taken_back = std::get_if<Break>(&message)) {
    if (const Open* open = side_.connection().open(taken_back->open)) open->changed();
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
  const std::string question(as_text(pushed.request.bytes()));
  auto expected = file->second.answers.take_expected(question);
  if (!expected) return;
  KnownAnswer& known = *expected;
  known.here = true;
  known.status = Status{pushed.status};
  known.response = response;
  known.came = now;
  const Open* open = side_.connection().open(pushed.open);
  // Waiting queries were sent before any change.
  const std::deque<Message> waiting = std::exchange(known.waiting, {});
  for (const Message& request : waiting) {
    if (known.status == Status::pending) {
      side_.pass_on(now, request);
    } else {
      answer(now, request, known);
    }
  }
  if (known.status == Status::pending || !open || known.version != version_of(*open, question)) return;
  const bool again = open->caching & lease_state::read || open->watched;
  const auto request = request_of(pushed.request.bytes());
  if (!waiting.empty() && (!again || !request || request->type == InfoType::file_system)) return;
  file->second.answers.keep(question, std::move(known));
}

void NearMetadata::closed(TimePoint now, const Open& open) {
  const auto found = files_.find(open.key);
  if (found == files_.end()) return;
  File& file = found->second;
  for (const std::string& question : file.pushed) {
    if (!file.asked.contains(question)) openings_.in_vain(file.kind, question);
  }
  const std::vector<Message> waiting = file.answers.clear();
  files_.erase(found);
  for (const Message& request : waiting) side_.pass_on(now, request);  // the server reports that it is closed
}

}  // namespace longhaul::smb::smb2
