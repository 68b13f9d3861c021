// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/disk_read_ahead.h"

#include <algorithm>
#include <map>
#include <utility>

#include "codecs/reduction/disk_hooks.h"

namespace longhaul::reduction {
namespace {

// Read-ahead for the coming blocks; a small ring takes less at once.
constexpr std::uint64_t kFirstAhead = 4u << 20, kMostAhead = 16u << 20;
constexpr std::uint64_t kKeptBehind = 1u << 20;  // of a cursor's pieces, for repeats slightly further back

// Loads of one stream, requested or waiting for the next block: segments may be small, and on a busy host
// many loads complete between two blocks.
constexpr std::size_t kMostWaiting = kMaxLoads / 2;

}  // namespace

void DiskReadAhead::before_encoding(std::uint64_t stream, const ReductionStages& stages) {
  auto found = flows_.find(stream);
  if (found == flows_.end()) return;
  Flow& flow = found->second;
  flow.latest_block = ++blocks_;
  if (flow.come.empty()) return;
  if (!stages.dedup_disk || !stages.dedup_memory) return drop_come(flow);
  for (const Come& one : std::exchange(flow.come, {})) {
    if (one.bytes) come_bytes_ -= one.bytes->size();
    if (!wanted(flow, one.asked)) continue;
    // The twin may have dropped it since it was requested.
    if (one.bytes && common_.common(one.asked.segment)) {
      append_loaded(one.asked, flow, one.bytes->bytes());
    } else {
      flow.cursor->brought += one.asked.length;  // no stream waits for it,
      flow.cursor->over = true;                  // and another cursor may look further ahead
    }
  }
}

void DiskReadAhead::drop_come(Flow& flow) {
  for (const Come& one : std::exchange(flow.come, {}))
    if (one.bytes) come_bytes_ -= one.bytes->size();
  flow.cursor.reset();
}

// If too much was loaded for flows, those idle for longest lose their data, and search for their positions
// again.
void DiskReadAhead::make_room(const Flow& flow, std::uint64_t bytes) {
  while (come_bytes_ + bytes > most_waiting()) {
    Flow* idlest = nullptr;
    for (auto& [stream, other] : flows_)
      if (&other != &flow && !other.come.empty() && (!idlest || other.latest_block < idlest->latest_block))
        idlest = &other;
    if (!idlest) return;
    drop_come(*idlest);
  }
}

void DiskReadAhead::forget(std::uint64_t stream) {
  auto found = flows_.find(stream);
  if (found == flows_.end()) return;
  drop_come(found->second);
  flows_.erase(found);
}

void DiskReadAhead::on_quiet() {
  for (auto& [stream, flow] : flows_)
    if (!flow.come.empty()) drop_come(flow);
}

void DiskReadAhead::clear() {
  flows_.clear();
  come_bytes_ = 0;
  loaded_.clear();
}

void DiskReadAhead::on_encoded(std::uint64_t stream, const BlockHeader& header, Disk disk) {
  auto found = flows_.find(stream);
  if (found != flows_.end() && (header.codec & kLoads)) {
    found->second.announced = 0;
    found->second.announced_bytes = 0;
  }
  if (disk == Disk::unused) return;
  if (found != flows_.end() && found->second.cursor) {
    Cursor& cursor = *found->second.cursor;
    std::uint64_t used = cursor.used;
    follow(cursor);
    if (cursor.used > used) {
      found->second.useless = 0;
      return ask_ahead(stream, found->second);
    }
    // Its loads may still be of use.
    if (cursor.asked > cursor.brought) return;
  }
  if (common_.empty() || encoder_.last().copied_bytes * 2 >= header.plain_bytes) return;
  look_up(stream, flows_[stream],
          encoder_.ring()->read(encoder_.shared()->head() - header.plain_bytes, header.plain_bytes));
}

// How far the block has used the data that the cursor loaded.
void DiskReadAhead::follow(Cursor& cursor) {
  std::uint64_t from_disk = 0;
  for (const dedup::Copy& copy : encoder_.copies()) {
    std::uint64_t end = copy.source + copy.length;
    for (const Piece& piece : cursor.pieces) {
      if (end <= piece.ring_offset || end > piece.ring_offset + piece.length) continue;
      cursor.used = std::max(cursor.used, piece.position + (end - piece.ring_offset));
      from_disk += copy.length;
    }
  }
  encoder_.count_from_disk(from_disk);
  while (!cursor.pieces.empty() &&
         cursor.pieces.front().position + cursor.pieces.front().length + kKeptBehind < cursor.used)
    cursor.pieces.pop_front();
}

// Content that the history holds need not be loaded: the encoder has searched it and found better matches. On
// a session's first pass most hits on disk are content that it has just stored there.
bool DiskReadAhead::in_memory(SegmentId id, const HookHit& hit) const {
  const SharedHistory& shared = *encoder_.shared();
  if (hit.name.writer == own_.writer && hit.name.epoch == own_.epoch)
    return shared.in_reach(hit.name.first + hit.offset);
  return loaded_.holds(id, hit.offset, shared);
}

void DiskReadAhead::look_up(std::uint64_t stream, Flow& flow, Bytes plain) {
  find_hooks(plain, hooks_);
  fingerprints_.clear();
  hits_.clear();
  for (const Hook& hook : hooks_) fingerprints_.push_back(hook.fingerprint);
  store_.find(fingerprints_, common_.links(), hits_);
  // The segment with the most hits, the last one if several: the content after it is likely to come next.
  std::map<SegmentId, std::pair<std::size_t, const HookHit*>> votes;
  std::pair<std::size_t, const HookHit*> best{0, nullptr};
  for (const HookHit& hit : hits_) {
    const SegmentId id = CommonSegments::id_of(hit.name);
    const SegmentName* both = common_.common(id);
    if (!both || *both != hit.name || in_memory(id, hit)) continue;
    auto& vote = votes[id];
    vote = {vote.first + 1, &hit};
    if (vote.first >= best.first) best = vote;
  }
  // A stream with useless hits needs more hits.
  if (!best.second || best.first < (std::size_t{1} << std::min(flow.useless, 3u))) return;
  const HookHit& hit = *best.second;
  std::uint64_t start = hit.offset + (plain.size() - hooks_[hit.index].offset);
  if (flow.cursor) {
    const Cursor& before = *flow.cursor;
    // It was loaded already, and the encoder did not use it.
    if (before.segment == hit.name && before.begin <= start && start < before.next) return;
    if (before.used == 0) ++flow.useless;
  }
  const std::uint64_t ahead = std::min(kFirstAhead, encoder_.ring()->size() / 16);
  Cursor cursor{.serial = ++serial_, .segment = hit.name, .ahead = ahead};
  cursor.begin = cursor.next = static_cast<std::uint32_t>(std::min<std::uint64_t>(start, hit.name.length));
  flow.cursor = std::move(cursor);
  ask_ahead(stream, flow);
}

// Keeps `ahead` bytes before the next block; twice as many while they are useful.
void DiskReadAhead::ask_ahead(std::uint64_t stream, Flow& flow) {
  Cursor& cursor = *flow.cursor;
  std::uint64_t most = std::min(kMostAhead, encoder_.ring()->size() / 16);
  if (cursor.used > cursor.ahead / 2) cursor.ahead = std::min(2 * cursor.ahead, most);
  while (!cursor.over && cursor.asked < cursor.used + cursor.ahead &&
         flow.asked + flow.come.size() + flow.announced < kMostWaiting) {
    // If much waits already, each cursor reads little ahead.
    if (come_bytes_ > most_waiting() / 2 && flow.asked + flow.come.size() > 0) return;
    if (cursor.next >= cursor.segment.length) {
      const SegmentName* behind = common_.behind(cursor.segment);
      if (!behind) {
        cursor.over = true;
        return;
      }
      cursor.segment = *behind;
      cursor.begin = cursor.next = 0;
    }
    std::uint32_t size = std::min(kLoadBytes, cursor.segment.length - cursor.next);
    const SegmentId id = CommonSegments::id_of(cursor.segment);
    if (!common_.common(id)) {  // no longer
      cursor.over = true;
      return;
    }
    LoadId load = store_.load(cursor.segment, cursor.next, size);
    asked_[load] = {stream, cursor.serial, id, cursor.next, size};
    ++flow.asked;
    cursor.next += size;
    cursor.asked += size;
  }
}

void DiskReadAhead::on_loaded(LoadId load, std::optional<Slice> bytes) {
  auto found = asked_.find(load);
  if (found == asked_.end()) return;
  Asked asked = found->second;
  asked_.erase(found);
  auto found_flow = flows_.find(asked.stream);
  if (found_flow == flows_.end()) return;
  Flow& flow = found_flow->second;
  if (flow.asked > 0) --flow.asked;
  if (!wanted(flow, asked)) return;
  if (bytes) make_room(flow, bytes->size());
  if (bytes && come_bytes_ + bytes->size() > most_waiting()) bytes.reset();
  if (bytes) come_bytes_ += bytes->size();
  flow.come.push_back({asked, std::move(bytes)});
}

void DiskReadAhead::on_cannot(const Load& load) {
  // A load that was not announced, or is out of reach by now, need not be cancelled.
  if (auto stream = loaded_.give_up(load))
    encoder_.give_up(*stream, {load.ring_offset, load.ring_offset + load.length});
}

// Whether the stream still reads where this was requested.
bool DiskReadAhead::wanted(const Flow& flow, const Asked& asked) {
  return flow.cursor && flow.cursor->serial == asked.serial;
}

void DiskReadAhead::append_loaded(const Asked& asked, Flow& flow, Bytes bytes) {
  Cursor& cursor = *flow.cursor;
  std::uint32_t offset = asked.offset;
  Buffer loads;
  std::optional<Piece> run;
  loaded_.forget_out_of_reach(*encoder_.shared());
  auto end_run = [&] {
    if (!run) return;
    const Load load{asked.segment, offset, static_cast<std::uint32_t>(run->length), run->ring_offset};
    write_load(load, loads);
    loaded_.add(load, asked.stream);
    offset += static_cast<std::uint32_t>(run->length);
    cursor.pieces.push_back(*run);
    ++flow.announced;
    flow.announced_bytes += run->length;
    run.reset();
  };
  while (!bytes.empty()) {
    Bytes piece = bytes.first(std::min(bytes.size(), kMaxBlockPlainBytes));
    // Loads that one block cannot name stay on disk.
    if (flow.announced + (run ? 1 : 0) >= kMaxLoads ||
        flow.announced_bytes + (run ? run->length : 0) + piece.size() > kMaxLoadedBytes)
      break;
    auto at = encoder_.append_history(asked.stream, piece);
    if (!at) {
      // Too much is unanswered: the stream continues without the disk.
      cursor.over = true;
      break;
    }
    std::uint64_t lap = encoder_.ring()->size();
    if (run && (*at != run->ring_offset + run->length || *at % lap == 0)) end_run();
    if (!run) run = Piece{*at, cursor.brought, 0};
    run->length += piece.size();
    cursor.brought += piece.size();
    bytes = bytes.subspan(piece.size());
  }
  cursor.brought += bytes.size();  // omitted ranges count as loaded: nothing waits for them
  end_run();
  if (!loads.empty()) encoder_.announce_load(asked.stream, loads);
}

}  // namespace longhaul::reduction
