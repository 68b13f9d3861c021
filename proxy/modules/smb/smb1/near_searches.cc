// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_searches.h"

#include <algorithm>

namespace longhaul::smb::smb1 {

void NearSearches::erase_pages(const OpenKey& key) {
  const auto pages = pages_.extract(key);
  if (pages.empty()) return;
  for (const Page& page : pages.mapped()) held_bytes_ -= page.request.size() + page.attached.size();
}

void NearSearches::forget_waiting(const OpenKey& key) {
  const auto waiting = waiting_.extract(key);
  if (!waiting.empty()) held_bytes_ -= waiting.mapped().frame.size();
}

bool NearSearches::request(TimePoint now, const Message& message, const Slice& frame) {
  const Header& header = message.header;
  if (header.command == Command::find_close2 && message.first().words.size() >= 2) {
    const OpenKey key = search_key(header.uid, header.tid, u16_at(message.first().words, 0));
    erase_pages(key);
    running_.erase(key);
    if (plain_.size() >= kMostPlain) out_.abort();
    plain_.insert(key);
    return false;
  }
  if (header.command != Command::trans2 || message.is_chained()) return false;
  const auto part = parse_transaction(message, message.first());
  if (!part || !part->is_whole()) return false;
  if (static_cast<Trans2>(part->function) == Trans2::find_first2) {
    const auto first = parse_find_first(part->parameters);
    if (first && firsts_.size() < kMostWaiting)
      firsts_.insert_or_assign(number_of(header), First{changes_, (first->flags & kCloseAfter) != 0});
  }
  if (static_cast<Trans2>(part->function) != Trans2::find_next2) return false;
  const auto next = parse_find_next(part->parameters);
  if (!next) return false;
  const OpenKey key = search_key(header.uid, header.tid, next->sid);
  if (plain_.contains(key)) return false;
  const auto found = pages_.find(key);
  if (found == pages_.end() || found->second.empty()) {
    // No known client sends another one of this search before the response. The far half pushes one page for
    // both.
    if (waiting_.size() >= kMostWaiting || waiting_.contains(key)) out_.abort();
    forget_waiting(key);
    held_bytes_ += frame.size();
    waiting_.emplace(key, Waiting{header, Slice::copy_of(frame.bytes()), part->max_data,
                                  Slice::copy_of(part->parameters)});
    return false;
  }
  if (!features_.metadata_relaxed && now - found->second.front().came > kUnreportedLife) {
    go_plain(key);
    return false;
  }
  const Page page = std::move(found->second.front());
  found->second.pop_front();
  held_bytes_ -= page.request.size() + page.attached.size();
  if (give(key, page, header, part->parameters, part->max_data)) return true;
  go_plain(key);
  return false;
}

bool NearSearches::give(const OpenKey& key, const Page& page, const Header& header, Bytes parameters,
                        std::uint32_t max_data) {
  const auto asked = parse_find_next(parameters);
  const auto fetched = parse_find_next(page.request.bytes());
  const auto answer = split_answer(page.attached.bytes());
  if (!asked || !fetched || !answer) return false;
  constexpr std::uint16_t kSame = kCloseAtEnd | kResumeKeys;
  if (asked->level != fetched->level || (asked->flags & kSame) != (fetched->flags & kSame) ||
      (asked->flags & kCloseAfter) != 0 || max_data < answer->data.size())
    return false;
  if ((asked->flags & kContinueFromLast) == 0 && !same_name(asked->name, fetched->name)) return false;
  if (page.status == 0) {
    const auto reply = parse_find_next_reply(answer->parameters);
    if (!reply || reply->count > asked->count) return false;
    if (reply->end_of_search) running_.erase(key);
    for (Slice& part : trans2_reply(header, 0, answer->parameters, answer->data,
                                    connection_.negotiated().max_answer_bytes()))
      out_.to_lan(std::move(part));
  } else {
    out_.to_lan(empty_reply(header, page.status));
    running_.erase(key);
  }
  connection_.answered_here(number_of(header));
  out_.tell(More{key, page.attached.size()});
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
  return true;
}

// A FIND_NEXT2 that the far half has swallowed is still answered from its fetch.
void NearSearches::go_plain(const OpenKey& key) {
  erase_pages(key);
  running_.erase(key);
  if (plain_.size() >= kMostPlain) out_.abort();
  plain_.insert(key);
  out_.tell(Drop{key, 0});
}

void NearSearches::far_dropped(const OpenKey& key) {
  if (pages_.contains(key) && !plain_.contains(key)) go_plain(key);
}

void NearSearches::changed() {
  ++changes_;
  while (!running_.empty()) go_plain(OpenKey(*running_.begin()));
}

void NearSearches::answered(const Message& answer, const Pending* request) {
  if (!request || request->header.command != Command::trans2) return;
  const auto function = static_cast<Trans2>(request->function);
  const auto part = parse_transaction(answer, answer.first());
  if (function == Trans2::find_next2) {
    const auto waiting = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& each) {
      return number_of(each.second.header) == number_of(answer.header);
    });
    if (waiting == waiting_.end()) return;
    const OpenKey key = waiting->first;
    forget_waiting(key);
    const auto reply = part && answer.header.status == 0 ? parse_find_next_reply(part->parameters)
                                                         : Result<FindReply>(Error::malformed_record);
    if (!reply || reply->end_of_search) running_.erase(key);
  } else if (function == Trans2::find_first2) {
    const auto first = firsts_.extract(number_of(answer.header));
    if (answer.header.status != 0) return;
    // A handle with this number is new.
    if (!part || part->parameters_at != 0 || part->parameters.size() < 2) return;
    const OpenKey key = search_key(answer.header.uid, answer.header.tid, u16_at(part->parameters, 0));
    erase_pages(key);
    plain_.erase(key);
    forget_waiting(key);
    const auto reply = parse_find_first_reply(part->parameters);
    if (!reply || reply->end_of_search || (!first.empty() && first.mapped().closes)) return;
    if (running_.size() >= kMostWaiting) changed();
    // Changes that the client has made since its request may be missing in the current fetch.
    if (first.empty() || first.mapped().changes != changes_) return go_plain(key);
    running_.insert(key);
  }
}

bool NearSearches::pushed(TimePoint now, const Answer& answer, const Slice& attached) {
  if (answer.command != static_cast<std::uint16_t>(Command::trans2) || answer.open.id[2] != std::byte{'S'})
    return false;
  Page page{answer.status, answer.request, attached, now};
  const auto found = waiting_.find(answer.open);
  if (found == waiting_.end()) {
    if (plain_.contains(answer.open)) return true;
    held_bytes_ += page.request.size() + page.attached.size();
    if (held_bytes_ > kMostHeldBytes) out_.abort();
    pages_[answer.open].push_back(std::move(page));
    return true;
  }
  const Waiting waiting = found->second;
  forget_waiting(answer.open);
  if (give(answer.open, page, waiting.header, waiting.parameters.bytes(), waiting.max_data)) return true;
  go_plain(answer.open);
  out_.pass_on(waiting.frame);  // the far half has swallowed it
  return true;
}

}  // namespace longhaul::smb::smb1
