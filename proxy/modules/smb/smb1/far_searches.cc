// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_searches.h"

namespace longhaul::smb::smb1 {

namespace {

Buffer owned(Bytes bytes) {
  Buffer copy;
  append(copy, bytes);
  return copy;
}

// [MS-CIFS] 2.2.6.3.1
Buffer find_next(std::uint16_t sid, const FindFirst& asked, std::uint32_t resume_key, Bytes name,
                 std::uint16_t flags, bool unicode) {
  Buffer parameters;
  append_field<std::uint16_t>(parameters, sid);
  append_field<std::uint16_t>(parameters, asked.count);
  append_field<std::uint16_t>(parameters, asked.level);
  append_field<std::uint32_t>(parameters, resume_key);
  append_field<std::uint16_t>(parameters, flags);
  append(parameters, name);
  parameters.insert(parameters.end(), unicode ? 2 : 1, std::byte{0});
  return parameters;
}

}  // namespace

std::optional<Slice> FarSearches::request(const Message& message, const Slice& frame) {
  const Header& header = message.header;
  if (header.command == Command::find_close2 && message.first().words.size() >= 2)
    searches_.erase(search_key(header.uid, header.tid, u16_at(message.first().words, 0)));
  if (header.command != Command::trans2) return frame;
  const auto part = parse_transaction(message, message.first());
  if (!part || !part->is_whole()) return frame;
  if (static_cast<Trans2>(part->function) == Trans2::find_first2) {
    const auto first = parse_find_first(part->parameters);
    if (first && connection_.is_ready() && features_.smb_metadata && features_.smb_metadata_relaxed && firsts_.size() < kMostSearches)
      firsts_.insert_or_assign(number_of(header),
                               First{*first, static_cast<std::uint16_t>(part->max_data), header.flags2, {}});
    return frame;
  }
  if (static_cast<Trans2>(part->function) != Trans2::find_next2) return frame;
  const auto next = parse_find_next(part->parameters);
  if (!next) return frame;
  const auto found = searches_.find(search_key(header.uid, header.tid, next->sid));
  if (found == searches_.end()) return frame;
  Search& search = found->second;
  if (!search.plain && (search.fetching || !search.pushed.empty())) return std::nullopt;
  // Pushed answers were not taken, or there are none: the client goes on by itself from where it is.
  const bool moved = search.plain || search.over;
  const Position client = std::move(search.client);
  const FindFirst asked = search.asked;
  searches_.erase(found);
  if (!moved || (next->flags & kContinueFromLast) == 0) return frame;
  FindFirst same{next->count, asked.flags, next->level};
  const auto flags = static_cast<std::uint16_t>(next->flags & ~kContinueFromLast);
  const Buffer parameters =
      find_next(next->sid, same, client.resume_key, client.name, flags, header.is_unicode());
  return trans2_request({header.pid, header.uid, header.tid, header.mid, header.flags2}, part->function,
                        parameters, static_cast<std::uint16_t>(part->max_parameters),
                        static_cast<std::uint16_t>(part->max_data));
}

void FarSearches::answered(const Message& answer, const std::optional<Pending>& request) {
  const auto found = firsts_.find(number_of(answer.header));
  if (found == firsts_.end() || answer.header.command != Command::trans2) return;
  First& first = found->second;
  const auto part = parse_transaction(answer, answer.first());
  const bool fits = answer.header.status == 0 && part && first.answer.add(*part);
  if (fits && first.answer.is_complete()) begun(answer.header, first);
  if (!fits || request) firsts_.erase(found);
}

void FarSearches::begun(const Header& header, First& first) {
  const auto reply = parse_find_first_reply(first.answer.parameters());
  if (!reply || reply->end_of_search || (first.asked.flags & kCloseAfter) != 0 || stopped_ ||
      searches_.size() >= kMostSearches)
    return;
  const auto last = last_entry(first.asked.level, first.answer.data(), header.is_unicode());
  if (!last) return;
  Search search;
  search.uid = header.uid;
  search.tid = header.tid;
  search.sid = reply->sid;
  search.flags2 = first.flags2;
  search.max_data = first.max_data;
  search.asked = first.asked;
  search.server = {last->resume_key, owned(last->name)};
  search.client = search.server;
  searches_.insert_or_assign(search_key(search.uid, search.tid, search.sid), std::move(search));
}

void FarSearches::pump() {
  for (auto& [key, search] : searches_) {
    if (search.fetching || search.over || search.plain || stopped_ || search.pushed_bytes >= kMostAheadBytes)
      continue;
    if (!leg_.has_room()) return;
    fetch(key, search);
  }
}

void FarSearches::fetch(const OpenKey& key, Search& search) {
  const bool unicode = (search.flags2 & kUnicode) != 0;
  const auto flags = static_cast<std::uint16_t>((search.asked.flags & kResumeKeys) | kContinueFromLast);
  const Buffer parameters =
      find_next(search.sid, search.asked, search.server.resume_key, search.server.name, flags, unicode);
  search.fetching = true;
  search.answer = {};
  ++counters_.injected;
  leg_.inject(
      search.uid, search.tid, search.flags2, std::nullopt,
      [&](const Ids& ids) {
        return trans2_request(ids, static_cast<std::uint16_t>(Trans2::find_next2), parameters, 8,
                              search.max_data);
      },
      [this, key = key](const Message& answer) { return fetched(key, answer); });
}

ServerLeg::Parts FarSearches::fetched(const OpenKey& key, const Message& answer) {
  using Parts = ServerLeg::Parts;
  const auto found = searches_.find(key);
  const auto part = parse_transaction(answer, answer.first());
  if (found == searches_.end() || !found->second.fetching) {
    // Nobody waits for it. Whether more parts come is not known: they are recognised as ours all the same.
    return Parts::last;
  }
  Search& search = found->second;
  if (answer.header.status == 0 && part && search.answer.add(*part)) {
    if (!search.answer.is_complete()) return Parts::more;
    push(key, search, 0);
  } else {
    search.answer = {};
    push(key, search, answer.header.status != 0 ? answer.header.status : 0x80000006);  // no more files
  }
  return Parts::last;
}

void FarSearches::push(const OpenKey& key, Search& search, std::uint32_t status) {
  search.fetching = false;
  const bool unicode = (search.flags2 & kUnicode) != 0;
  const auto reply = parse_find_next_reply(search.answer.parameters());
  const auto last = last_entry(search.asked.level, search.answer.data(), unicode);
  if (status != 0 || !reply || reply->end_of_search || !last) search.over = true;
  Answer answer{.open = key, .command = static_cast<std::uint16_t>(Command::trans2), .status = status};
  const Buffer parameters = find_next(search.sid, search.asked, search.server.resume_key, search.server.name,
                                      search.asked.flags, unicode);
  answer.request = Slice::copy_of(parameters);
  const Slice attached = joined_answer(search.answer.parameters(), search.answer.data());
  answer.response_bytes = static_cast<std::uint32_t>(attached.size());
  out_.tell(answer, attached);
  if (last) search.server = {last->resume_key, owned(last->name)};
  search.pushed.push_back(search.server);
  search.sizes.push_back(attached.size());
  search.pushed_bytes += attached.size();
  search.answer = {};
}

// The near half has given one pushed answer to the client.
void FarSearches::consumed(const More& more) {
  const auto found = searches_.find(more.open);
  if (found == searches_.end() || found->second.pushed.empty()) return;
  Search& search = found->second;
  search.client = std::move(search.pushed.front());
  search.pushed.pop_front();
  search.pushed_bytes -= search.sizes.front();
  search.sizes.pop_front();
  if (!search.over || !search.pushed.empty()) return;
  // [MS-CIFS] 2.2.6.2.1: the client asked that the search be closed with its last entry; our requests did
  // not.
  if (search.asked.flags & kCloseAtEnd) {
    leg_.inject(
        search.uid, search.tid, search.flags2, std::nullopt,
        [&](const Ids& ids) { return find_close2_request(ids, search.sid); },
        [](const Message&) { return ServerLeg::Parts::last; });
  }
  searches_.erase(found);
}

void FarSearches::near_dropped(const Drop& drop) {
  const auto found = searches_.find(drop.open);
  if (found != searches_.end()) found->second.plain = true;
}

}  // namespace longhaul::smb::smb1
