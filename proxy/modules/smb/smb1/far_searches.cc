// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_searches.h"

#include "proxy/modules/smb/status.h"

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
    end(searches_.find(search_key(header.uid, header.tid, u16_at(message.first().words, 0))));
  if (header.command != Command::trans2) return frame;
  const auto part = parse_transaction(message, message.first());
  if (!part || !part->is_whole()) return frame;
  if (static_cast<Trans2>(part->function) == Trans2::find_first2) {
    const auto first = parse_find_first(part->parameters);
    if (first && connection_.is_ready() && features_.metadata && firsts_.size() < kMostSearches)
      firsts_.insert_or_assign(
          number_of(header),
          First{*first,
                file_name(header.tid, part->parameters.subspan(kPatternAt), header.is_unicode()),
                static_cast<std::uint16_t>(part->max_data),
                header.flags2,
                {}});
    return frame;
  }
  if (static_cast<Trans2>(part->function) != Trans2::find_next2) return frame;
  const auto next = parse_find_next(part->parameters);
  if (!next) return frame;
  const auto found = searches_.find(search_key(header.uid, header.tid, next->sid));
  if (found == searches_.end() || found->second.ended) return frame;
  Search& search = found->second;
  // Pushed entries arrive before it, whatever was sent since.
  if (!search.plain && search.pushed != 0) return std::nullopt;
  if (!search.plain && !search.changed && search.fetching) {
    search.owed = true;
    return std::nullopt;
  }
  // The client continues on its own. If the server is further ahead, it must go back.
  if (search.is_ahead() && ask_again(search, *next, header, *part)) return std::nullopt;
  end(found);
  return frame;
}

bool FarSearches::ask_again(Search& search, const FindNext& next, const Header& header,
                            const Transaction& part) {
  const bool goes_on = (next.flags & kContinueFromLast) != 0 || same_name(next.name, search.client.name);
  const MessageNumber number = number_of(header);
  if (!goes_on || again_.contains(number)) return false;
  if (again_.size() >= kMostSearches) out_.abort();  // no client has so many searches at a time
  again_.emplace(number, Again{search_key(header.uid, header.tid, next.sid),
                               header,
                               next.count,
                               next.level,
                               next.flags,
                               part.max_data,
                               {}});
  // The server must not close it while entries are kept.
  const FindFirst same{next.count, 0, next.level};
  const Buffer parameters = find_next(next.sid, same, search.client.resume_key, search.client.name,
                                      next.flags & kResumeKeys, header.is_unicode());
  leg_.send_renumbered(
      trans2_request({header.pid, header.uid, header.tid, header.mid, header.flags2}, part.function,
                     parameters, static_cast<std::uint16_t>(part.max_parameters),
                     static_cast<std::uint16_t>(part.max_data)),
      {Scope::Of::everything, {}, {}},
      [this, number](const Message& answer) { return asked_again(number, answer); });
  return true;
}

ServerLeg::Parts FarSearches::asked_again(MessageNumber number, const Message& message) {
  const auto asked = again_.find(number);
  if (asked == again_.end()) return ServerLeg::Parts::last;
  const auto part = parse_transaction(message, message.first());
  const bool fits = message.header.status == 0 && part && asked->second.answer.add(*part);
  if (fits && !asked->second.answer.is_complete()) return ServerLeg::Parts::more;
  const Again again = std::move(asked->second);
  again_.erase(asked);
  const auto reply =
      fits ? parse_find_next_reply(again.answer.parameters()) : Result<FindReply>(Error::malformed_record);
  const auto search = searches_.find(again.key);
  if (search != searches_.end() && !search->second.pages.empty() && (!reply || reply->count == 0)) {
    give_kept(search, again);
    return ServerLeg::Parts::last;
  }
  if (reply) {
    answer(again.header, 0, again.answer.parameters(), again.answer.data());
  } else {
    const auto status = fits ? static_cast<std::uint32_t>(Status::unsuccessful) : message.header.status;
    answer(again.header, status, {}, {});
  }
  if (search == searches_.end()) return ServerLeg::Parts::last;
  // From now on the server's position is the client's.
  if ((reply && reply->end_of_search) || (again.flags & kCloseAfter) != 0) {
    finish(search, again.flags);
  } else {
    erase(search);
  }
  return ServerLeg::Parts::last;
}

// The server has lost the position.
void FarSearches::give_kept(Searches::iterator found, const Again& again) {
  Search& search = found->second;
  const Page page = take_page(search);
  const auto told = split_answer(page.attached.bytes());
  const auto reply =
      told ? parse_find_next_reply(told->parameters) : Result<FindReply>(Error::malformed_record);
  const bool fits =
      page.status != 0 || (reply && reply->count <= again.count && told->data.size() <= again.max_data &&
                           again.level == search.asked.level &&
                           (again.flags & kResumeKeys) == (search.asked.flags & kResumeKeys));
  if (!fits) {
    answer(again.header, static_cast<std::uint32_t>(Status::unsuccessful), {}, {});
    return erase(found);
  }
  answer(again.header, page.status, told->parameters, told->data);
  search.client = page.end;
  search.astray = true;
  if ((search.over && search.pages.empty()) || (again.flags & kCloseAfter) != 0)
    return finish(found, again.flags);
  // The entry at its end may also be deleted before the client continues there.
  if (search.pages.empty() && !search.fetching && !stopped_ && held_bytes_ < kMostHeldBytes &&
      leg_.has_room())
    fetch(again.key, search);
}

void FarSearches::answer(const Header& request, std::uint32_t status, Bytes parameters, Bytes data) {
  if (status != 0) return out_.pass_on(empty_reply(request, status));
  for (Slice& part : trans2_reply(request, 0, parameters, data, connection_.negotiated().max_answer_bytes()))
    out_.pass_on(std::move(part));
}

FarSearches::Page FarSearches::take_page(Search& search) {
  Page page = std::move(search.pages.front());
  search.pages.pop_front();
  if (search.pushed != 0) --search.pushed;
  search.page_bytes -= page.attached.size();
  held_bytes_ -= page.attached.size();
  return page;
}

// [MS-CIFS] 2.2.6.2.1: the client requested that the search be closed; our requests did not.
void FarSearches::finish(Searches::iterator found, std::uint16_t flags) {
  const Search& search = found->second;
  if ((flags & (kCloseAtEnd | kCloseAfter)) != 0) {
    leg_.inject(
        search.uid, search.tid, search.flags2, std::nullopt,
        [&](const Ids& ids) { return find_close2_request(ids, search.sid); },
        [](const Message&) { return ServerLeg::Parts::last; });
  }
  erase(found);
}

void FarSearches::erase(Searches::iterator found) {
  if (found == searches_.end()) return;
  held_bytes_ -= found->second.page_bytes;
  watch_.listed(found->first);
  searches_.erase(found);
}

// A client need not wait for its FIND_NEXT2: that is answered first, from the fetch.
void FarSearches::end(Searches::iterator found) {
  if (found == searches_.end() || !found->second.owed) return erase(found);
  found->second.ended = true;
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
  const OpenKey key = search_key(search.uid, search.tid, search.sid);
  erase(searches_.find(key));
  Header asked = header;
  asked.flags2 = first.flags2;
  if (features_.metadata_relaxed || watch_.listing(key, asked, first.pattern))
    searches_.emplace(key, std::move(search));
}

void FarSearches::pump() {
  for (auto& [key, search] : searches_) {
    if (search.fetching || search.over || search.plain || search.changed || stopped_ ||
        search.page_bytes >= kMostAheadBytes || !(features_.metadata_relaxed || watch_.listens(key)))
      continue;
    if (held_bytes_ >= kMostHeldBytes || !leg_.has_room()) return;
    fetch(key, search);
  }
}

void FarSearches::fetch(const OpenKey& key, Search& search) {
  const bool unicode = (search.flags2 & kUnicode) != 0;
  const auto from = search.astray ? 0 : kContinueFromLast;
  const auto flags = static_cast<std::uint16_t>((search.asked.flags & kResumeKeys) | from);
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
    // No request waits for it. More parts may arrive: they are still recognised as ours.
    return Parts::last;
  }
  Search& search = found->second;
  if (answer.header.status == 0 && part && search.answer.add(*part)) {
    if (!search.answer.is_complete()) return Parts::more;
    push(key, search, 0);
  } else {
    search.answer = {};
    const auto none = static_cast<std::uint32_t>(Status::no_more_files);
    push(key, search, answer.header.status != 0 ? answer.header.status : none);
  }
  if (search.ended) erase(found);
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
  if ((!search.changed && !search.plain) || search.owed) {
    out_.tell(answer, attached);
    ++search.pushed;
  }
  search.owed = false;
  if (last) search.server = {last->resume_key, owned(last->name)};
  search.pages.push_back({search.server, status, attached});
  search.page_bytes += attached.size();
  held_bytes_ += attached.size();
  search.answer = {};
}

// The near half has used one pushed answer for the client.
void FarSearches::consumed(const More& more) {
  const auto found = searches_.find(more.open);
  if (found == searches_.end() || found->second.pushed == 0) return;
  Search& search = found->second;
  search.client = take_page(search).end;
  if (search.over && search.pages.empty()) finish(found, search.asked.flags);
}

void FarSearches::near_dropped(const Drop& drop) {
  const auto found = searches_.find(drop.open);
  if (found == searches_.end()) return;
  found->second.plain = true;
  watch_.listed(drop.open);
}

void FarSearches::changed(const OpenKey& key) {
  const auto found = searches_.find(key);
  if (found == searches_.end() || std::exchange(found->second.changed, true)) return;
  if (found->second.pushed != 0) out_.tell(Drop{key, 0});
}

}  // namespace longhaul::smb::smb1
