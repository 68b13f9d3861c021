// SPDX-License-Identifier: Apache-2.0
// See far_aliases.h.
#include "proxy/modules/smb/smb2/far_aliases.h"

namespace longhaul::smb::smb2 {

void FarAliases::make_real(const MakeReal& wanted) {
  if (waiting_.size() >= kMostWaiting || real_.size() >= kMostReal)
    return side_.out().abort();  // not sent by our near half
  if (waiting_.empty() && ask(wanted)) return;
  held_bytes_ += wanted.request.size();
  waiting_.push_back(wanted);
}

void FarAliases::on_ids_freed() {
  for (; !waiting_.empty() && ask(waiting_.front()); waiting_.pop_front())
    held_bytes_ -= waiting_.front().request.size();
}

// If the server refuses now (another client has changed the name, or the access rights), it does not know the
// id, and returns an error to every request with it.
bool FarAliases::ask(const MakeReal& wanted) {
  const auto request = parse_create_request(wanted.request.bytes());
  if (!request) return true;  // the near half has parsed it: not from our near half
  const FileId alias = file_of(wanted.open);
  const bool sent = side_.server().inject_awaited(
      wanted.open.session, wanted.open.tree,
      [&request](const RequestHead& head) { return build_create_request(head, *request); },
      [this, alias](TimePoint, const Frame&, const Element& answer) {
        --asking_;
        const auto created = parse_create_response(answer.bytes);
        if (answer.header.status == Status::success && created) real_.insert_or_assign(alias, created->file);
      });
  if (sent) ++asking_;
  return sent;
}

Message FarAliases::resolved(Message message) {
  if (real_.empty()) return message;
  std::optional<EditedFrame> edited;
  for (const Element& element : message.elements) {
    const auto file = named_file(element);
    const auto real = file ? real_.find(*file) : real_.end();
    if (real == real_.end()) continue;
    if (!edited) edited.emplace(message.frame.bytes);
    edited->set_file_id(real->second, *file_id_at(element.header.command), element.offset);
    if (element.header.command == Command::close) real_.erase(real);
  }
  if (!edited) return message;
  auto again = parse_message({message.frame.kind, std::move(*edited).whole()});
  return again ? std::move(*again) : message;  // it was parsed before
}

}  // namespace longhaul::smb::smb2
