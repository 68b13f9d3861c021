// SPDX-License-Identifier: Apache-2.0
// See near_volumes.h.
#include "proxy/modules/smb/smb2/near_volumes.h"

#include "proxy/modules/smb/smb2/volumes.h"
#include "proxy/modules/smb/volume_looks.h"

namespace longhaul::smb::smb2 {
namespace {

using namespace std::chrono_literals;

constexpr modules::Duration kSizeLife = 2s, kLabelLife = 10s;

bool tells_sizes(const QueryInfoRequest& question) {
  switch (question.info_class) {
    case fs_info::volume:
    case fs_info::device:
    case fs_info::attribute:
    case fs_info::object_id:
    case fs_info::sector_size:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool NearVolumes::is_good(TimePoint now, const Told& told, const QueryInfoRequest& question) const {
  if (side_.surroundings().features.metadata_relaxed)
    return now - told.since <= (tells_sizes(question) ? kSizeLife : kLabelLife);
  return told.watched != OpenKey{} && now - told.since <= kVolumeAnswers && !side_.has_promised();
}

void NearVolumes::changed() {
  ++changes_;
  std::erase_if(told_, [](const auto& each) {
    const auto question = request_of(as_bytes(std::get<std::string>(each.first)));
    return !question || tells_sizes(*question);
  });
}

void NearVolumes::before_request(TimePoint, const Message& message, const Changes&) {
  for (const Element& element : message.elements) {
    if (ends_trees(element.header.command)) told_.clear();
    if (may_change_space(side_.connection(), element)) {
      if (changing_.size() < Connection::kMostPending) changing_.insert(element.header.message_id);
      changed();
    }
    if (element.header.command != Command::close) continue;
    if (const Pending* request = side_.connection().pending(element.header.message_id))
      std::erase_if(told_, [&](const auto& each) {
        return each.second.watched == key_of(request->session, request->tree, request->file);
      });
  }
}

Taken NearVolumes::on_request(TimePoint now, const Message& message, const Changes&) {
  const Header& header = message.header();
  if (!message.single() || header.command != Command::query_info) return Taken::no;
  const auto request = parse_query_info_request(message.first().bytes);
  if (!request || request->type != InfoType::file_system) return Taken::no;
  const Open* open = side_.connection().open(request->file);
  const auto question = question_of(*request);
  if (!question || !open || open->session != header.session_id || open->tree != header.tree_id ||
      open->closing || !side_.surroundings().features.metadata)
    return Taken::no;
  std::string text(as_text(question->bytes()));
  const auto found = told_.find({header.session_id, header.tree_id, text});
  if (found != told_.end() && is_good(now, found->second, *request)) {
    ++side_.counters().metadata_answers;
    side_.answer(now, header.message_id,
                 build_buffer_response(answer_to(header, Status::success), found->second.response.bytes()));
    return Taken::yes;
  }
  asked_.insert_or_assign(header.message_id,
                          Asked{.question = std::move(text), .changes = changes_, .sent = now});
  return Taken::no;
}

void NearVolumes::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim) continue;
    // Ids of trees are reused.
    if (ends_trees(each.request.command)) told_.clear();
    if (changing_.erase(each.request.id) != 0) changed();
    const auto asked = asked_.extract(each.request.id);
    if (asked.empty() || !each.element || each.element->header.status != Status::success) continue;
    if (const auto response = parse_buffer_response(each.element->bytes))
      told(side_.surroundings().features.metadata_relaxed ? now : asked.mapped().sent,
           {each.request.session, each.request.tree, asked.mapped().question}, asked.mapped().changes,
           Slice::copy_of(response->buffer));
  }
}

void NearVolumes::told(TimePoint since, const Key& key, std::uint64_t changes, const Slice& response) {
  if (changes != changes_ || !changing_.empty()) return;  // older than this connection's changes
  if (response.size() > kMostToldBytes || side_.has_promised()) return;
  if (told_.size() >= kMostTold) told_.clear();
  told_.insert_or_assign(key, Told{.response = response, .since = since});
}

// Only what the server has answered to the client since the last change is watched: reports from before that
// change have all arrived by then.
Taken NearVolumes::on_twin(TimePoint, const TwinMessage& message, const Slice& attached) {
  const auto* answer = std::get_if<Answer>(&message);
  if (!answer || answer->command != static_cast<std::uint16_t>(Command::query_info)) return Taken::no;
  const auto question = request_of(answer->request.bytes());
  const Features& features = side_.surroundings().features;
  if (!question || question->type != InfoType::file_system || features.metadata_relaxed) return Taken::no;
  const Open* open = side_.connection().open(answer->open);
  if (!open || open->closing) return Taken::no;
  const auto told = told_.find({open->session, open->tree, std::string(as_text(answer->request.bytes()))});
  if (told == told_.end()) return Taken::no;
  if (Status{answer->status} != Status::success || attached.size() > kMostToldBytes) {
    told_.erase(told);
    return Taken::no;
  }
  told->second.watched = open->key;
  told->second.response = Slice::copy_of(attached.bytes());
  return Taken::no;
}

void NearVolumes::unheard() {
  if (!side_.surroundings().features.metadata_relaxed) told_.clear();
}

}  // namespace longhaul::smb::smb2
