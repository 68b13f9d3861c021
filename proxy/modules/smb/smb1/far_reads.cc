// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_reads.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

namespace {

// What every server grants with CAP_LARGE_READX; more would need unix extensions ([MS-SMB] 3.3.5.8).
constexpr std::uint32_t kLargestRead = 60 * 1024;
// Remembered pushes between two misses of the near half. Forgotten ones are fetched once more.
constexpr std::size_t kMaxPushes = 1024;
constexpr std::uint64_t kSmallFile = 64 * 1024;
constexpr std::uint64_t kForever = ~0ull;

double seconds(modules::Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

ReadAheadLimits FarReads::limits() const {
  const std::uint32_t largest =
      std::min(kLargestRead, std::max<std::uint32_t>(connection_.max_read_bytes(), 512));
  return limits_for(static_cast<double>(surroundings_.line_bytes_per_second),
                    seconds(surroundings_.round_trip), largest);
}

void FarReads::opened(const Open& open) {
  closed(open.key);
  File& file = files_[open.key];
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
  count(file);
  pump();
}

void FarReads::closed(const OpenKey& key) {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  give_up(key, found->second);
  ahead_bytes_ -= found->second.ahead_bytes;
  waiting_.erase(key);
  files_.erase(found);
}

void FarReads::count(File& file) {
  ahead_bytes_ -= file.ahead_bytes;
  file.ahead_bytes = file.policy.ahead_bytes();
  ahead_bytes_ += file.ahead_bytes;
}

void FarReads::asked(const Asked& asked, const Slice& frame, const ReadRequest& read) {
  client_reads_ = true;
  const auto found = files_.find(asked.open);
  const Open* open = connection_.open(asked.open);
  if (found == files_.end() || !open) return read_through(asked.open, asked.message, frame);
  File& file = found->second;
  file.may_plan = true;
  if (file.stamp != asked.stamp || !open->may_cache_reads() || !open->is_guarded(surroundings_.features) ||
      stopped_ || asked.missing_from >= asked.missing_to || leg_.is_busy(asked.open) ||
      file.swallowed.size() >= kMostSwallowed) {
    file.policy.on_read(read.offset, read.length, limits());
    count(file);
    return read_through(asked.open, asked.message, frame);
  }
  Swallowed waits{frame, asked.message, {}};
  waits.missing.add({asked.missing_from, asked.missing_to});
  while (!file.pushes.empty() && file.pushes.front().number <= asked.seen) file.pushes.pop_front();
  for (const Push& push : file.pushes) waits.missing.remove(push.range);
  if (file.end_of_file && file.end_pushed_with > asked.seen)
    waits.missing.remove({*file.end_of_file, kForever});
  if (waits.missing.empty()) {  // all of it is on its way
    file.policy.on_read(read.offset, read.length, limits());
    return count(file);
  }
  IntervalSet to_fetch = waits.missing;
  for (const auto& [id, range] : file.fetching) to_fetch.remove(range);
  for (const Interval& range : file.wanted) to_fetch.remove(range);
  if (!to_fetch.empty()) file.policy.missed(to_fetch.intervals().front().begin);
  file.policy.on_read(read.offset, read.length, limits());
  count(file);
  for (const Interval& range : to_fetch.intervals()) file.wanted.push_back(range);
  if (!file.wanted.empty()) waiting_.insert(asked.open);
  file.swallowed.push_back(std::move(waits));
  ++swallowed_;
  pump();
}

void FarReads::read_through(const OpenKey& key, MessageNumber number, Slice frame) {
  leg_.send_renumbered(std::move(frame), {ServerLeg::Scope::Of::open, key, {}},
                       [this, key, number](const Message& answer) {
                         const auto reply = parse_read_reply(answer, answer.first());
                         const bool good = answer.header.status == 0 && reply;
                         Answer told{.open = key,
                                     .command = static_cast<std::uint16_t>(Command::read_andx),
                                     .status = answer.header.status};
                         Buffer request;
                         append_field<std::uint64_t>(request, number);
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
  count(found->second);
  found->second.may_plan = true;
}

void FarReads::used(const Used& used) {
  const auto found = files_.find(used.open);
  if (found == files_.end()) return;
  found->second.policy.on_read(used.offset, used.length, limits());
  count(found->second);
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

void FarReads::changed(const OpenKey& key) {
  const auto found = files_.find(key);
  if (found != files_.end() && !found->second.is_void) drop(key);
}

void FarReads::make_void(File& file) {
  file.policy.forget_fetched();
  count(file);
  file.wanted.clear();
  file.fetching.clear();
  file.pushes.clear();
  file.end_of_file.reset();
  file.may_plan = false;
  file.is_void = true;
}

// Data of swallowed READs is requested from the server before all later requests.
void FarReads::give_up(const OpenKey& key, File& file) {
  for (Swallowed& read : file.swallowed) read_through(key, read.number, std::move(read.frame));
  swallowed_ -= file.swallowed.size();
  file.swallowed.clear();
}

std::optional<Interval> FarReads::next(const Open& open, File& file) {
  if (!open.may_cache_reads() || !open.is_guarded(surroundings_.features) || leg_.is_busy(open.key))
    return std::nullopt;
  const ReadAheadLimits now = limits();
  if (!file.wanted.empty()) {
    Interval& first = file.wanted.front();
    const Interval range{first.begin, std::min<std::uint64_t>(first.end, first.begin + now.largest_read)};
    first.begin = range.end;
    if (first.size() == 0) file.wanted.pop_front();
    return range;
  }
  if (!open.may_read || !file.may_plan || stopped_ || !surroundings_.features.read_ahead)
    return std::nullopt;
  if (ahead_bytes_ + now.largest_read > most_ahead_bytes_) return std::nullopt;
  auto range = file.policy.next(now);
  count(file);
  if (range && file.end_of_file) {
    if (range->begin >= *file.end_of_file) return std::nullopt;
    range->end = std::min(range->end, *file.end_of_file);
  }
  return range;
}

// Waiting READs come first, whatever their file; then a few files, the next few at the next call.
void FarReads::pump() {
  for (auto key = waiting_.begin(); key != waiting_.end() && leg_.has_room();) {
    const OpenKey open = *key++;
    File& file = files_.at(open);
    pump(open, file);
    if (file.wanted.empty()) waiting_.erase(open);
  }
  for (std::size_t n = std::min(files_.size(), kMostAtOnce); n > 0 && leg_.has_room(); --n) {
    auto next = files_.upper_bound(looked_at_);
    if (next == files_.end()) next = files_.begin();
    looked_at_ = next->first;
    pump(next->first, next->second);
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
  file.fetching.emplace_back(id, range);
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
  const auto mine =
      std::find_if(file.fetching.begin(), file.fetching.end(), [&](const auto& f) { return f.first == id; });
  if (mine == file.fetching.end()) return pump();
  file.fetching.erase(mine);
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
  ++file.pushed;
  file.pushes.push_back({file.pushed, range});
  if (file.pushes.size() > kMaxPushes) file.pushes.pop_front();
  if (end) {
    file.end_of_file = end;
    file.end_pushed_with = file.pushed;
    file.policy.on_end_of_file(*end);
    std::erase_if(file.wanted, [&](const Interval& wanted) { return wanted.begin >= *end; });
  }
  Ahead ahead{.open = key,
              .stamp = file.stamp,
              .offset = range.begin,
              .length = static_cast<std::uint32_t>(data.size())};
  ahead.end_of_file = end;
  counters_.ahead_bytes += data.size();
  out_.tell(ahead, data.empty() ? Slice{} : Slice::copy_of(data));
  const auto satisfied = [&](Swallowed& read) {
    read.missing.remove(range);
    if (end) read.missing.remove({*end, kForever});
    return read.missing.empty();
  };
  swallowed_ -= std::erase_if(file.swallowed, satisfied);
}

}  // namespace longhaul::smb::smb1
