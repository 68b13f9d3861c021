// SPDX-License-Identifier: Apache-2.0
// The client's requests; see near_metadata.h. near_metadata_answers.cc has the effects of responses.
#include "proxy/modules/smb/smb2/near_metadata.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
void NearMetadata::before_request(TimePoint, const Message& message, const Changes&) {
  const Command command = message.header().command;
  if (!message.single() || (command != Command::set_info && command != Command::write)) return;
  const Pending* request = side_.connection().pending(message.header().message_id);
  const Open* open = request ? side_.connection().open(request->file) : nullptr;
  const auto file = open ? files_.find(open->key) : files_.end();
  if (file != files_.end()) file->second.position.follow(message, *request);
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
  if (!side_.surroundings().features.metadata) return;
  const Header& header = message.header();
  const Tree* tree = side_.connection().tree(header.session_id, header.tree_id);
  const auto request = parse_create_request(message.first().bytes);
  if (!tree || tree->type != ShareType::disk || !request || request->durable == Durable::reconnect ||
      request->durable == Durable::reconnect_v2) {
    return;
  }
  using FileSystems = OpeningQuestions::FileSystems;
  // The far half queries without waiting for promised writes, so the free space would be too large; and its
  // changes are not reported.
  const bool may_ask_for_space = !side_.has_promised() && side_.surroundings().features.metadata_relaxed;
  for (const std::string& question : openings_.opening(
           header.message_id, *request, may_ask_for_space ? FileSystems::included : FileSystems::excluded)) {
    side_.out().tell(Expect{.message = number_of(header.message_id),
                            .command = static_cast<std::uint16_t>(Command::query_info),
                            .request = Slice::copy_of(as_bytes(question))});
  }
}

void NearMetadata::opened_ahead(const Message& create, const std::vector<Slice>& questions) {
  const auto request = parse_create_request(create.first().bytes);
  if (request) openings_.opening_with(create.header().message_id, *request, questions);
}

void NearMetadata::before_flush(const Message& message) {
  const Pending* request = side_.connection().pending(message.header().message_id);
  const Open* open = request ? side_.connection().open(request->file) : nullptr;
  const auto file = open ? files_.find(open->key) : files_.end();
  if (file == files_.end()) return;
  flushing_.insert_or_assign(message.header().message_id, Flushing{open->key, ChangesSince(*open)});
}

void NearMetadata::opened(const Open& open, MessageId by) {
  const auto opening = openings_.opened(number_of(by));
  if (!opening) return;
  files_.erase(open.key);
  File& file = files_.try_emplace(open.key, totals_).first->second;
  file.kind = opening->kind;
  file.pushed = opening->questions;
  file.since = ChangesSince(open);
  if (open.disk_file) file.position.set(0);
  for (const std::string& question : file.pushed) file.answers.expect(question, version_of(open, question));
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
  if (file->second.asked.size() < kMostAsked && file->second.asked.insert(key).second)
    openings_.asked(file->second.kind, key);

  KnownAnswers& answers = file->second.answers;
  KnownAnswer* const known = answers.find(key);
  if (known && known->version == version_of(*open, key)) {
    if (!known->here) return answers.wait(*known, message) ? Taken::yes : Taken::no;
    const bool of_file = request->type != InfoType::file_system;
    if (may_be_used(of_file ? AnswerAbout::file : AnswerAbout::volume, *open, now - known->came,
                    side_.surroundings())) {
      answer(now, message, *known);
      if (!of_file || !(open->caching & lease_state::read || open->watched)) answers.forget(key);
      return Taken::yes;
    }
  }
  if (known && known->here) answers.forget(key);
  if (side_.surroundings().features.metadata) {
    asked_.insert_or_assign(header.message_id,
                            Asked{.open = open->key, .question = key, .version = version_of(*open, key)});
  }
  return Taken::no;
}

// Queries about the disk are sent again after any change.
NearMetadata::Version NearMetadata::version_of(const Open& open, const std::string& question) const {
  const auto request = request_of(as_bytes(question));
  if (!request || request->type == InfoType::file_system) return side_.connection().changes();
  return open.group->count(&FileCounts::changes) + open.group->count(&FileCounts::doubts);
}

void NearMetadata::answer(TimePoint now, const Message& request, const KnownAnswer& known) {
  const Header header = answer_to(request.header(), known.status);
  modules::Counters& counters = side_.counters();
  ++counters.metadata_answers;
  counters.ahead_used_bytes += known.response.size();
  Slice response = known.response;
  if (const Pending* pending = side_.connection().pending(header.message_id)) {
    const auto file = files_.find(key_of(pending->session, pending->tree, pending->file));
    if (file != files_.end())
      response = file->second.position.corrected(*pending, response.bytes()).value_or(response);
  }
  side_.answer(now, header.message_id,
               known.status == Status::success ? build_buffer_response(header, response.bytes())
                                               : build_error_response(header));
}

Taken NearMetadata::close(TimePoint now, const Message& message) {
  if (!side_.surroundings().features.metadata) return Taken::no;
  const auto request = parse_close_request(message.first().bytes);
  const Open* open = request ? side_.connection().open(request->file) : nullptr;
  const auto file = open ? files_.find(open->key) : files_.end();
  const Header& header = message.header();
  if (file == files_.end() || open->session != header.session_id || open->tree != header.tree_id)
    return Taken::no;
  if (!may_be_closed_locally(*open, file->second.since) || side_.owes(*open)) return Taken::no;
  const bool known =
      !file->second.since.any(*open) && attributes_guarded(*open, side_.surroundings().features);
  if (!known && request->flags & kClosePostQueryAttributes) return Taken::no;
  if (file->second.answers.has_waiting()) return Taken::no;
  side_.out().tell(Promised{.open = open->key, .message = number_of(header.message_id)});
  const CloseResponse response = closed_as(*open, request->flags);
  closed(now, *open);
  closing_.answered(header.message_id, *open);
  side_.pass_on(now, message);
  ++side_.counters().metadata_answers;
  side_.answer(now, header.message_id, build_close_response(answer_to(header, Status::success), response),
               NearSide::Told::yes);
  return Taken::yes;
}

}  // namespace longhaul::smb::smb2
