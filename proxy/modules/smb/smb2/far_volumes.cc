// SPDX-License-Identifier: Apache-2.0
// See far_volumes.h.
#include "proxy/modules/smb/smb2/far_volumes.h"

#include "proxy/modules/smb/smb2/volumes.h"

namespace longhaul::smb::smb2 {

// The near half's stored responses become void, too, when it receives these.
void FarVolumes::before_request(TimePoint, const Message& message, const Changes&) {
  for (const Element& element : message.elements) {
    if (ends_trees(element.header.command)) looks_.forget();
    if (may_change_space(side_.connection(), element)) {
      if (changing_.size() < Connection::kMostPending) changing_.insert(element.header.message_id);
      looks_.forget();
    }
    if (element.header.command != Command::close) continue;
    if (const Pending* request = side_.connection().pending(element.header.message_id))
      looks_.closing(key_of(request->session, request->tree, request->file));
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
    if (!each.interim && changing_.erase(each.request.id) != 0) looks_.forget();
}

void FarVolumes::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim) continue;
    const auto asked = asked_.extract(each.request.id);
    if (asked.empty() || !each.element || each.element->header.status != Status::success) continue;
    const auto response = parse_buffer_response(each.element->bytes);
    const Open* open =
        side_.connection().open(key_of(each.request.session, each.request.tree, each.request.file));
    const auto question = request_of(asked.mapped().bytes());
    if (response && open && !open->closing && question && question->output_bytes <= kMostAskedBytes &&
        !side_.connection().sessions().any_untouchable())
      looks_.begin(now, open->key, asked.mapped(), Slice::copy_of(response->buffer));
  }
}

bool FarVolumes::ask(const VolumeLooks::Volume& volume, std::uint64_t number) {
  const Open* open = side_.connection().open(volume.open);
  auto request = request_of(volume.question.bytes());
  if (!open || open->closing || open->may_be_replayed || !request) return false;
  request->file = open->file;
  return side_.server().inject(
      open->session, open->tree, 1,
      [request](const RequestHead& head) { return build_query_info_request(head, *request); },
      [this, number](TimePoint, const Frame&, const Element& answer) {
        const auto response = parse_buffer_response(answer.bytes);
        const bool good = answer.header.status == Status::success && response;
        looks_.answered(number, good ? std::optional(Slice::copy_of(response->buffer)) : std::nullopt);
      });
}

void FarVolumes::tell(const VolumeLooks::Volume& volume, Status status) {
  const Slice response = status == Status::success ? volume.told : Slice{};
  side_.counters().ahead_bytes += response.size();
  side_.out().tell(Answer{.open = volume.open,
                          .command = static_cast<std::uint16_t>(Command::query_info),
                          .status = static_cast<std::uint32_t>(status),
                          .request = volume.question,
                          .response_bytes = static_cast<std::uint32_t>(response.size())},
                   response);
}

}  // namespace longhaul::smb::smb2
