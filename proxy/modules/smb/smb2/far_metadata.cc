// SPDX-License-Identifier: Apache-2.0
// See far_metadata.h.
#include "proxy/modules/smb/smb2/far_metadata.h"

#include "proxy/modules/smb/smb2/pushed_answer.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {

Taken FarMetadata::on_twin(TimePoint, const TwinMessage& message, const Slice&) {
  if (const auto* expect = std::get_if<Expect>(&message)) {
    if (expect->command != static_cast<std::uint16_t>(Command::query_info)) return Taken::yes;
    if (expected_.size() >= kMostOpening || expect->request.size() != kQuestionKeyBytes) {
      side_.out().abort();  // not sent by our near half
      return Taken::yes;
    }
    std::vector<Slice>& questions = expected_[id_of(expect->message)];
    if (questions.size() < kMostQuestions) questions.push_back(expect->request);
    return Taken::yes;
  }
  return Taken::no;
}

void FarMetadata::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::closed) continue;
    if (const auto unasked = unwatched_.extract(change.open->key); !unasked.empty())
      ask_not(change.open->key, unasked.mapped());
  }
}

void FarMetadata::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (!each.element || each.interim) continue;
    if (each.request.command != Command::create) continue;
    const auto found = expected_.find(each.request.id);
    if (found == expected_.end()) continue;
    std::vector<Slice> questions = std::move(found->second);
    expected_.erase(found);
    const auto created = parse_create_response(each.element->bytes);
    if (each.element->header.status != Status::success || !created) continue;
    if (Open* open = side_.connection().open(created->file)) {
      ask_when_watched(now, *open, std::move(questions));
    } else {  // one too many here, where earlier CLOSEs arrive later
      ask_not(key_of(each.request.session, each.request.tree, created->file), questions);
    }
  }
}

// A response about something that others may change unnoticed is useless.
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
  for (const Slice& question : questions) ask(open, question);
}

void FarMetadata::ask_not(const OpenKey& open, const std::vector<Slice>& questions) {
  for (const Slice& question : questions)
    push_answer(side_, open, Command::query_info, Status::pending, question, {});
}

void FarMetadata::on_watched(const Open& open) {
  if (const auto unasked = unwatched_.extract(open.key); !unasked.empty()) {
    if (!open.watched) return ask_not(open.key, unasked.mapped());
    for (const Slice& question : unasked.mapped()) ask(open, question);
  }
}

void FarMetadata::ask(const Open& open, const Slice& question) {
  auto request = request_of(question.bytes());
  const OpenKey key = open.key;
  bool sent = false;
  if (request && request->output_bytes <= kQuestionBytes && !open.may_be_replayed) {
    request->file = open.file;
    sent = side_.server().inject(
        open.session, open.tree, 1,
        [request](const RequestHead& head) { return build_query_info_request(head, *request); },
        [this, key, question](TimePoint, const Frame&, const Element& answer) {
          // The near half uses complete responses and errors without data; other queries are left to the
          // client.
          const Status status = answer.header.status;
          const auto response = parse_buffer_response(answer.bytes);
          if (status == Status::success && response) {
            push_answer(side_, key, Command::query_info, status, question, Slice::copy_of(response->buffer));
          } else {
            push_answer(side_, key, Command::query_info, has_answer(answer) ? Status::pending : status,
                        question, {});
          }
        });
  }
  if (!sent) push_answer(side_, key, Command::query_info, Status::pending, question, {});
}

}  // namespace longhaul::smb::smb2
