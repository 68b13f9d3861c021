// SPDX-License-Identifier: Apache-2.0
// See near_volumes.h.
#include "proxy/modules/smb/smb2/near_volumes.h"

#include "proxy/modules/smb/smb2/question.h"

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

bool NearVolumes::may_change_space(const Element& element) const {
  const Pending* request = side_.connection().pending(element.header.message_id);
  switch (element.header.command) {
    case Command::write:
    case Command::set_info:
    case Command::ioctl:
      return true;
    case Command::create:
      return !request || !request->opening || request->opening->disposition != Disposition::open;
    case Command::close: {
      const Open* open = request ? side_.connection().open(request->file) : nullptr;
      return open && open->options & create_options::delete_on_close;
    }
    default:
      return false;
  }
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
    if (may_change_space(element)) {
      if (changing_.size() < Connection::kMostPending) changing_.insert(element.header.message_id);
      changed();
    }
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
      open->closing || !side_.surroundings().features.metadata ||
      !side_.surroundings().features.metadata_relaxed)
    return Taken::no;
  std::string text(as_text(question->bytes()));
  const auto found = told_.find({header.session_id, header.tree_id, text});
  if (found != told_.end() && now - found->second.came <= (tells_sizes(*request) ? kSizeLife : kLabelLife)) {
    ++side_.counters().metadata_answers;
    side_.answer(now, header.message_id,
                 build_buffer_response(answer_to(header, Status::success), found->second.response.bytes()));
    return Taken::yes;
  }
  asked_.insert_or_assign(header.message_id, Asked{.question = std::move(text), .changes = changes_});
  return Taken::no;
}

void NearVolumes::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim) continue;
    // Ids of trees are reused.
    switch (each.request.command) {
      case Command::session_setup:
      case Command::logoff:
      case Command::tree_connect:
      case Command::tree_disconnect:
        told_.clear();
        break;
      default:
        break;
    }
    if (changing_.erase(each.request.id) != 0) changed();
    const auto asked = asked_.extract(each.request.id);
    if (asked.empty() || !each.element || each.element->header.status != Status::success) continue;
    if (const auto response = parse_buffer_response(each.element->bytes))
      told(now, {each.request.session, each.request.tree, asked.mapped().question}, asked.mapped().changes,
           Slice::copy_of(response->buffer));
  }
}

void NearVolumes::told(TimePoint now, const Key& key, std::uint64_t changes, const Slice& response) {
  if (changes != changes_ || !changing_.empty()) return;  // older than this connection's changes
  if (response.size() > kMostToldBytes) return;
  if (told_.size() >= kMostTold) told_.clear();
  told_.insert_or_assign(key, Told{.response = response, .came = now});
}

}  // namespace longhaul::smb::smb2
