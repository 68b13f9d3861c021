// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/pending_requests.h"

namespace longhaul::smb::smb2 {

const Pending* PendingRequests::find(MessageId id) const {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : &found->second;
}

Pending* PendingRequests::find(MessageId id) {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : &found->second;
}

void PendingRequests::add(Pending request) {
  if (const auto before = requests_.find(request.id); before != requests_.end()) (void)remove(before);
  if (request.opening) request.name_bytes = request.opening->name_bytes();
  name_bytes_ += request.name_bytes;
  requests_.emplace(request.id, std::move(request));
}

std::optional<PendingRequests::Match> PendingRequests::answered(const Header& response) {
  const auto found = requests_.find(response.message_id);
  if (found == requests_.end() || found->second.command != response.command) return std::nullopt;
  if (!response.is_interim()) return Match{.request = remove(found)};
  Pending& request = found->second;
  request.async = true;
  request.async_id = response.async_id;
  Match interim{.interim = true};
  interim.request.command = request.command;
  interim.request.id = request.id;
  interim.request.session = request.session;
  interim.request.tree = request.tree;
  interim.request.file = request.file;
  return interim;
}

std::optional<Pending> PendingRequests::take(MessageId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return std::nullopt;
  return remove(found);
}

void PendingRequests::clear() {
  requests_.clear();
  name_bytes_ = 0;
}

// Ends the counts for a file that last until there is a response.
Pending PendingRequests::remove(ById::iterator found) {
  Pending request = std::move(found->second);
  requests_.erase(found);
  name_bytes_ -= request.name_bytes;
  request.opens_file.reset();
  request.changes_file.reset();
  return request;
}

}  // namespace longhaul::smb::smb2
