// SPDX-License-Identifier: Apache-2.0
// See far_volumes.h.
#include "proxy/modules/smb/smb2/far_volumes.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/volumes.h"

namespace longhaul::smb::smb2 {

// What the near half has answered with is void for it, too, when it sees these.
void FarVolumes::before_request(TimePoint, const Message& message, const Changes&) {
  for (const Element& element : message.elements) {
    if (ends_trees(element.header.command)) forget();
    if (may_change_space(side_.connection(), element)) {
      if (changing_.size() < Connection::kMostPending) changing_.insert(element.header.message_id);
      forget();
    }
    if (element.header.command != Command::close) continue;
    if (const Pending* request = side_.connection().pending(element.header.message_id))
      std::erase_if(volumes_, [&](const Watched& each) {
        return each.open == key_of(request->session, request->tree, request->file);
      });
  }
}

Taken FarVolumes::on_request(TimePoint, const Message& message, const Changes&) {
  const Features& features = side_.surroundings().features;
  if (!features.metadata || features.metadata_relaxed || asked_.size() >= kMostAsked) return Taken::no;
  if (auto question = question_of_volume(message))
    asked_.insert_or_assign(message.header().message_id, std::move(*question));
  return Taken::no;
}

void FarVolumes::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered)
    if (!each.interim && changing_.erase(each.request.id) != 0) forget();
}

void FarVolumes::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim) continue;
    const auto asked = asked_.extract(each.request.id);
    if (asked.empty() || !each.element || each.element->header.status != Status::success) continue;
    const auto response = parse_buffer_response(each.element->bytes);
    const Open* open =
        side_.connection().open(key_of(each.request.session, each.request.tree, each.request.file));
    if (response && open && !open->closing && response->buffer.size() <= kMostAnswerBytes)
      begin(now, *open, asked.mapped(), Slice::copy_of(response->buffer));
  }
}

void FarVolumes::begin(TimePoint now, const Open& open, const Slice& question, const Slice& response) {
  const auto request = request_of(question.bytes());
  if (!request || request->output_bytes > kMostAskedBytes || side_.connection().any_untouchable()) return;
  std::erase_if(volumes_, [&](const Watched& each) {
    return each.session == open.session && each.tree == open.tree &&
           as_text(each.question.bytes()) == as_text(question.bytes());
  });
  if (volumes_.size() >= kMostVolumes) return;
  volumes_.push_back({.number = ++last_,
                      .open = open.key,
                      .session = open.session,
                      .tree = open.tree,
                      .question = question,
                      .told = response,
                      .until = now + kVolumeWatched,
                      .due = now + kVolumePeriod});
  tell(volumes_.back(), Status::success);
}

// ---- looks

void FarVolumes::on_timeout(TimePoint now) {
  for (auto each = volumes_.begin(); each != volumes_.end();) {
    const auto volume = each++;
    if (volume->due > now) continue;
    if (volume->until <= now) {
      volumes_.erase(volume);
    } else if (volume->is_asked || !look(now, *volume)) {
      tell(*volume, Status::pending);  // nothing is known of it for a while
      volumes_.erase(volume);
    }
  }
}

std::optional<TimePoint> FarVolumes::next_timeout() const {
  std::optional<TimePoint> first;
  for (const Watched& volume : volumes_)
    if (!first || volume.due < *first) first = volume.due;
  return first;
}

bool FarVolumes::look(TimePoint now, Watched& volume) {
  const Open* open = side_.connection().open(volume.open);
  auto request = request_of(volume.question.bytes());
  if (!open || open->closing || open->may_be_replayed || !request) return false;
  request->file = open->file;
  volume.is_asked = true;
  volume.due = now + kVolumePeriod;
  return side_.inject(
      now, volume.session, volume.tree, 1,
      [request](const RequestHead& head) { return build_query_info_request(head, *request); },
      [this, number = volume.number](TimePoint then, const Frame&, const Element& answer) {
        answered(then, number, answer);
      });
}

void FarVolumes::answered(TimePoint, std::uint64_t number, const Element& answer) {
  const auto volume = std::find_if(volumes_.begin(), volumes_.end(),
                                   [&](const Watched& each) { return each.number == number; });
  if (volume == volumes_.end()) return;
  volume->is_asked = false;
  const auto response = parse_buffer_response(answer.bytes);
  if (answer.header.status != Status::success || !response || response->buffer.size() > kMostAnswerBytes) {
    tell(*volume, Status::pending);
    volumes_.erase(volume);
  } else if (as_text(response->buffer) != as_text(volume->told.bytes())) {
    volume->told = Slice::copy_of(response->buffer);
    tell(*volume, Status::success);
  }
}

void FarVolumes::tell(const Watched& volume, Status status) {
  const Slice response = status == Status::success ? volume.told : Slice{};
  side_.counters().ahead_bytes += response.size();
  side_.out().tell(Answer{.open = volume.open,
                          .command = static_cast<std::uint16_t>(Command::query_info),
                          .status = static_cast<std::uint32_t>(status),
                          .request = volume.question,
                          .response_bytes = static_cast<std::uint32_t>(response.size())},
                   response);
}

void FarVolumes::forget() { volumes_.clear(); }

}  // namespace longhaul::smb::smb2
