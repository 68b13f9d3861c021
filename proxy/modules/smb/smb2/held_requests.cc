// SPDX-License-Identifier: Apache-2.0
// See held_requests.h.
#include "proxy/modules/smb/smb2/held_requests.h"

#include <utility>

namespace longhaul::smb::smb2 {
namespace {

bool names_itself(const Message& message) {
  return message.single() && message.header().command != Command::cancel;
}

}  // namespace

bool HeldRequests::hold_up(const OrderScope& scope) const {
  if (scope.is_barrier()) return !held_.empty();
  return !barriers_.empty() || files_.contains(scope.file.get());
}

const OrderScope* HeldRequests::find(MessageId request) const {
  const auto found = scopes_.find(request);
  return found == scopes_.end() ? nullptr : &found->second;
}

void HeldRequests::hold(Held held) {
  bytes_ += held.message.frame.bytes.size();
  const Sequence sequence = held.sequence;
  held_.insert(sequence);
  if (names_itself(held.message)) scopes_.insert_or_assign(held.message.header().message_id, held.scope);
  held.message = kept(held.message);
  if (held.scope.is_barrier()) return barriers_.push_back(std::move(held));
  OfFile& waiting = files_[held.scope.file.get()];
  waiting.file = held.scope.file;
  waiting.held.push_back(std::move(held));
  if (waiting.held.size() > 1) return;
  // Requests that wait only for promises of this file are examined when one of those is completed.
  if (!barriers_.empty()) {
    behind_barrier_.emplace(sequence, waiting.file);
  } else {
    behind_any_.emplace(sequence, waiting.file);
  }
}

void HeldRequests::take_first(std::deque<Held>& held, std::vector<Message>& released) {
  Held first = std::move(held.front());
  held.pop_front();
  held_.erase(first.sequence);
  bytes_ -= first.message.frame.bytes.size();
  if (names_itself(first.message)) scopes_.erase(first.message.header().message_id);
  released.push_back(std::move(first.message));
}

// All requests of one file that need not wait any more.
void HeldRequests::release_first(OfFile& waiting, const UnfinishedPromises& promises,
                                 const FileGroup& any_file, std::vector<Message>& released) {
  const auto first_of_any = promises.first_of(any_file);
  while (!waiting.held.empty()) {
    const Sequence sequence = waiting.held.front().sequence;
    if (!barriers_.empty() && barriers_.front().sequence < sequence) {
      behind_barrier_.emplace(sequence, waiting.file);
      return;
    }
    if (first_of_any && *first_of_any < sequence) {
      behind_any_.emplace(sequence, waiting.file);
      return;
    }
    if (promises.hold_up(waiting.held.front().scope, sequence)) return;
    take_first(waiting.held, released);
  }
}

void HeldRequests::move_before(Heads& heads, std::optional<Sequence> end, std::vector<FileGroupRef>& to) {
  const auto last = end ? heads.lower_bound(*end) : heads.end();
  for (auto each = heads.begin(); each != last; ++each) to.push_back(each->second);
  heads.erase(heads.begin(), last);
}

std::vector<Message> HeldRequests::release(const FileGroupRef& file, const UnfinishedPromises& promises,
                                           const FileGroup& any_file) {
  std::vector<Message> released;
  if (held_.empty()) return released;
  std::vector<FileGroupRef> some{file};
  for (;;) {
    move_before(behind_any_, promises.first_of(any_file), some);
    for (const FileGroupRef& each : std::exchange(some, {})) {
      const auto waiting = files_.find(each.get());
      if (waiting == files_.end()) continue;
      release_first(waiting->second, promises, any_file, released);
      if (waiting->second.held.empty()) files_.erase(waiting);
    }
    // A request that waits for everything before it is the first of all.
    if (barriers_.empty() || barriers_.front().sequence != *held_.begin() ||
        promises.hold_up(barriers_.front().scope, barriers_.front().sequence))
      return released;
    take_first(barriers_, released);
    move_before(behind_barrier_, barriers_.empty() ? std::nullopt : std::optional(barriers_.front().sequence),
                some);
  }
}

}  // namespace longhaul::smb::smb2
