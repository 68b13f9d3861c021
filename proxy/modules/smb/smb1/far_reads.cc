// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_reads.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

namespace {

// Supported by every server with CAP_LARGE_READX; more would need unix extensions ([MS-SMB] 3.3.5.8).
constexpr std::uint32_t kLargestRead = 60 * 1024;
// Remembered pushes between two misses of the near half. Forgotten ones are fetched once more.
constexpr std::size_t kMaxPushes = 1024;
constexpr std::uint64_t kSmallFile = 64 * 1024;

}  // namespace

ReadAheadLimits FarReads::limits() const {
  const std::uint32_t largest =
      std::min(kLargestRead, std::max<std::uint32_t>(connection_.negotiated().max_read_bytes(), 512));
  return limits_for(surroundings_.line_bytes_per_second, surroundings_.round_trip, largest);
}

void FarReads::opened(const Open& open) {
  closed(open.key);
  File& file = files_.try_emplace(open.key, ahead_bytes_, swallowed_).first->second;
  // A client that writes a new file does not read it.
  const bool empty = open.size_is_known && open.end_of_file == 0;
  // A READ changes the file's time of last access: small files are read ahead only for clients that do read.
  const bool small = open.size_is_known && open.end_of_file < kSmallFile && !client_reads_;
  std::optional<std::uint64_t> size;
  if (open.size_is_known) size = open.end_of_file;
  if (open.may_cache_reads() && open.is_guarded(surroundings_.features) && open.may_read && !open.random &&
      !empty && !small) {
    file.policy.opened(size, limits());
  } else if (size) {
    file.policy.sized(*size);
  }
  pump();
}

void FarReads::closed(const OpenKey& key) {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  give_up(key, found->second);
  waiting_.erase(key);
  files_.erase(found);
}

void FarReads::asked(const Asked& asked, const Slice& frame, const ReadRequest& read) {
  client_reads_ = true;
  const auto found = files_.find(asked.open);
  const Open* open = connection_.open(asked.open);
  if (found == files_.end() || !open) return read_through(asked.open, asked.message, frame);
  File& file = found->second;
  file.may_plan = true;
  if (file.stamp != asked.stamp || !may_fetch(*open) || stopped_ || asked.missing_from >= asked.missing_to ||
      leg_.is_busy(asked.open) || file.swallowed.size() >= kMostSwallowed) {
    file.policy.on_read(read.offset, read.length, limits());
    return read_through(asked.open, asked.message, frame);
  }
  IntervalSet missing;
  missing.add({asked.missing_from, asked.missing_to});
  file.pushes.seen(asked.seen);
  file.pushes.remove_from(missing, asked.stamp);
  if (missing.empty()) return file.policy.on_read(read.offset, read.length, limits());  // it is under way
  IntervalSet to_fetch = missing;
  file.fetches.remove_from(to_fetch);
  for (const Interval& range : file.wanted) to_fetch.remove(range);
  if (!to_fetch.empty()) file.policy.missed(to_fetch.intervals().front().begin);
  file.policy.on_read(read.offset, read.length, limits());
  for (const Interval& range : to_fetch.intervals()) file.wanted.push_back(range);
  if (!file.wanted.empty()) waiting_.insert(asked.open);
  file.swallowed.add({frame, asked.message}, std::move(missing));
  pump();
}

void FarReads::read_through(const OpenKey& key, MessageNumber number, Slice frame) {
  leg_.send_renumbered(std::move(frame), {Scope::Of::open, key, {}},
                       [this, key, number](const Message& answer) {
                         const auto reply = parse_read_reply(answer, answer.first());
                         const bool good = answer.header.status == 0 && reply;
                         Answer told{.open = key,
                                     .command = static_cast<std::uint16_t>(Command::read_andx),
                                     .status = answer.header.status};
                         Buffer request;
                         append_field<std::uint64_t>(request, number.number());
                         told.request = Slice::copy_of(request);
                         const Slice data = good ? Slice::copy_of(reply->data) : Slice{};
                         told.response_bytes = static_cast<std::uint32_t>(data.size());
                         out_.tell(told, data);
                         return ServerLeg::Parts::last;
                       });
}

void FarReads::passed(const OpenKey& key, const ReadRequest& read) {
  client_reads_ = true;
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  found->second.policy.on_read(read.offset, read.length, limits());
  found->second.may_plan = true;
}

void FarReads::used(const Used& used) {
  const auto found = files_.find(used.open);
  if (found == files_.end()) return;
  found->second.policy.on_read(used.offset, used.length, limits());
  counters_.ahead_used_bytes += used.length;
  pump();
}

void FarReads::near_dropped(const Drop& drop) {
  const auto found = files_.find(drop.open);
  if (found == files_.end()) return;
  found->second.stamp.near = drop.epoch;
  make_void(found->second);
  give_up(drop.open, found->second);
}

void FarReads::drop(const OpenKey& key) {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  File& file = found->second;
  ++file.stamp.far;
  make_void(file);
  out_.tell(Drop{key, file.stamp.far});
  give_up(key, file);
}

void FarReads::changed_by(const Pending& request) {
  for (const auto& [fid, open] : connection_.opens().all())
    if (open.serial == request.serial || open.oplock == Oplock::level2) changed(open.key);
}

void FarReads::changed(const OpenKey& key) {
  const auto found = files_.find(key);
  if (found != files_.end() && !found->second.is_void) drop(key);
}

void FarReads::make_void(File& file) {
  file.policy.forget_fetched();
  file.wanted.clear();
  file.fetches.give_up();
  file.end_of_file.reset();
  file.may_plan = false;
  file.is_void = true;
}

// Data of swallowed READs is requested from the server before all later requests.
void FarReads::give_up(const OpenKey& key, File& file) {
  for (Read& read : file.swallowed.take_all()) read_through(key, read.number, std::move(read.frame));
}

bool FarReads::may_fetch(const Open& open) const {
  return open.may_cache_reads() && open.is_guarded(surroundings_.features);
}

std::optional<Interval> FarReads::next(const Open& open, File& file) {
  if (!may_fetch(open) || leg_.is_busy(open.key) || !file.wanted.empty() || !open.may_read ||
      !file.may_plan || stopped_ || !surroundings_.features.read_ahead)
    return std::nullopt;
  const ReadAheadLimits now = limits();
  if (ahead_bytes_ + now.largest_read > most_ahead_bytes_) return std::nullopt;
  auto range = file.policy.next(now);
  if (range && file.end_of_file) {
    if (range->begin >= *file.end_of_file) return std::nullopt;
    range->end = std::min(range->end, *file.end_of_file);
  }
  return range;
}

// Waiting READs come first, whatever their file; then a few files, the next few at the next call.
void FarReads::pump() {
  for (auto key = waiting_.begin(); key != waiting_.end() && leg_.has_room_for_client();) {
    const OpenKey open = *key++;
    File& file = files_.at(open);
    fetch_wanted(open, file);
    if (file.wanted.empty()) waiting_.erase(open);
  }
  for (std::size_t n = std::min(files_.size(), kMostAtOnce); n > 0 && leg_.has_room(); --n) {
    auto next = files_.upper_bound(looked_at_);
    if (next == files_.end()) next = files_.begin();
    looked_at_ = next->first;
    pump(next->first, next->second);
  }
}

// These requests replace READs that the client has sent, so they use the places of those at the server. If
// they needed free ones, they could wait for ever for requests that the server answers only when something
// happens.
void FarReads::fetch_wanted(const OpenKey& key, File& file) {
  const Open* open = connection_.open(key);
  // The client has locked it, for example: nothing is fetched any more, so the server answers.
  if (!open || !may_fetch(*open)) return drop(key);
  const std::uint32_t most = limits().largest_read;
  while (!file.wanted.empty() && leg_.has_room_for_client() && !leg_.is_busy(key)) {
    Interval& first = file.wanted.front();
    const Interval range{first.begin, std::min<std::uint64_t>(first.end, first.begin + most)};
    first.begin = range.end;
    if (first.size() == 0) file.wanted.pop_front();
    fetch(*open, file, range);
  }
}

void FarReads::pump(const OpenKey& key, File& file) {
  const Open* open = connection_.open(key);
  while (open && leg_.has_room()) {
    const auto range = next(*open, file);
    if (!range) return;
    fetch(*open, file, *range);
  }
}

void FarReads::fetch(const Open& open, File& file, Interval range) {
  const std::uint64_t id = ++fetches_;
  file.fetches.begin(id, range);
  file.is_void = false;
  ++counters_.injected;
  leg_.inject(
      open.uid, open.tid, open.flags2, open.key,
      [&](const Ids& ids) {
        return read_request(ids, open.fid, range.begin, static_cast<std::uint32_t>(range.size()));
      },
      [this, key = open.key, id, stamp = file.stamp, range](const Message& answer) {
        fetched(key, id, stamp, range, answer);
        return ServerLeg::Parts::last;
      });
}

void FarReads::fetched(const OpenKey& key, std::uint64_t id, Stamp stamp, Interval range,
                       const Message& answer) {
  const auto found = files_.find(key);
  if (found == files_.end() || found->second.stamp != stamp) return pump();
  File& file = found->second;
  if (!file.fetches.take(id)) return pump();
  const Open* open = connection_.open(key);
  const auto reply = parse_read_reply(answer, answer.first());
  if (!open || answer.header.status != 0 || !reply || reply->data.size() > range.size()) {
    drop(key);  // the server answers the client itself
    return pump();
  }
  const std::size_t size = reply->data.size();
  const Interval got{range.begin, range.begin + size};
  std::optional<std::uint64_t> end;
  if (size == 0) {
    end = range.begin;
  } else if (stamp == Stamp{} && open->size_is_known && got.end == open->end_of_file) {
    end = got.end;  // unchanged since
  } else if (size < range.size()) {
    // Short at the end of the file, or if the server returns no more at once: the next READ shows which.
    file.wanted.push_front({got.end, range.end});
    waiting_.insert(key);
  }
  push(key, file, got, reply->data, end);
  pump();
}

void FarReads::push(const OpenKey& key, File& file, Interval range, Bytes data,
                    std::optional<std::uint64_t> end) {
  if (end) {
    end = std::min(*end, file.end_of_file.value_or(~0ull));  // no data: it ends here or before
    file.end_of_file = end;
    file.policy.on_end_of_file(*end);
    std::erase_if(file.wanted, [&](const Interval& wanted) { return wanted.begin >= *end; });
  }
  file.pushes.add(range, file.stamp, end);
  file.pushes.keep_at_most(kMaxPushes);
  Ahead ahead{.open = key,
              .stamp = file.stamp,
              .offset = range.begin,
              .length = static_cast<std::uint32_t>(data.size())};
  ahead.end_of_file = end;
  counters_.ahead_bytes += data.size();
  out_.tell(ahead, data.empty() ? Slice{} : Slice::copy_of(data));
  file.swallowed.pushed(range, end);
}

}  // namespace longhaul::smb::smb1
