// SPDX-License-Identifier: Apache-2.0
// How history returns from disk: a stream of the encoder reads along segments ahead of its blocks, and the
// decoder loads the same bytes to the same places.
#include <algorithm>
#include <cstring>
#include <utility>

#include "codecs/reduction/disk_hooks.h"
#include "codecs/reduction/disk_tier.h"
#include "codecs/reduction/errors.h"

namespace longhaul::reduction {
namespace {

// Read-ahead for the coming blocks; a small ring takes less at once.
constexpr std::uint64_t kFirstAhead = 4u << 20, kMostAhead = 16u << 20;
constexpr std::uint64_t kKeptBehind = 1u << 20;  // of a cursor's pieces, for repeats slightly further back
// Loads that failed and are not reported yet; a twin that keeps requesting and reads no answers violates the
// protocol.
constexpr std::size_t kMaxCannot = 16'384;
// Loads for the decoder at once; others wait, so that no peer has the disk to itself. No honest peer has that
// many under way.
constexpr std::uint64_t kBroughtAtOnce = 8u << 20;
constexpr std::size_t kMaxToBring = 16'384;

// Loads of one stream, requested or waiting for the next block: segments may be small, and on a busy host
// many loads complete between two blocks.
constexpr std::size_t kMostWaiting = DiskTier::kMaxLoads / 2;

// A block that is wholly a repeat adds nothing: content is stored once. One with a little new content is
// stored whole, so that reading along the segment later finds no holes.
bool is_new(std::uint64_t copied, std::uint64_t size) { return copied * 50 < size * 49; }

}  // namespace

// ---------------------------------------------------------------------------- what this side sends

void DiskTier::before_encoding(std::uint64_t stream, const ReductionStages& stages) {
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

void DiskTier::drop_come(Flow& flow) {
  for (const Come& one : std::exchange(flow.come, {}))
    if (one.bytes) come_bytes_ -= one.bytes->size();
  flow.cursor.reset();
}

// When too much was loaded for flows, those idle for longest lose theirs, and find their places again.
void DiskTier::make_room(const Flow& flow, std::uint64_t bytes) {
  while (come_bytes_ + bytes > most_waiting()) {
    Flow* idlest = nullptr;
    for (auto& [stream, other] : flows_)
      if (&other != &flow && !other.come.empty() && (!idlest || other.latest_block < idlest->latest_block))
        idlest = &other;
    if (!idlest) return;
    drop_come(*idlest);
  }
}

void DiskTier::forget_flow(std::uint64_t stream) {
  auto found = flows_.find(stream);
  if (found == flows_.end()) return;
  drop_come(found->second);
  flows_.erase(found);
}

void DiskTier::on_encoded(std::uint64_t stream, const ReductionStages& stages, const BlockHeader& header) {
  auto found = flows_.find(stream);
  if (found != flows_.end() && (header.codec & kLoads)) {
    found->second.announced = 0;
    found->second.announced_bytes = 0;
  }
  if (!stages.dedup_disk || !stages.dedup_memory || !(header.codec & kInRing) || !twin_has_disk_) return;
  std::uint64_t copied = encoder_.last().copied_bytes;
  const Interval block{encoder_.shared()->head() - header.plain_bytes, encoder_.shared()->head()};
  if (is_new(copied, header.plain_bytes)) fresh_.add(block);
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
  if (common_.empty() || copied * 2 >= header.plain_bytes) return;
  look_up(stream, flows_[stream], encoder_.ring()->read(block.begin, header.plain_bytes));
}

// How far the block has used the data that the cursor loaded.
void DiskTier::follow(Cursor& cursor) {
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

// Content that the history holds need not be loaded: the encoder has looked there and found better matches.
// On a session's first pass most hits on disk are content that it has just stored there.
bool DiskTier::in_memory(Id id, const HookHit& hit) const {
  const SharedHistory& shared = *encoder_.shared();
  if (hit.name.writer == sites_.own && hit.name.epoch == epoch_)
    return shared.in_reach(hit.name.first + hit.offset);
  const auto behind = loaded_.upper_bound({id, hit.offset});
  if (behind == loaded_.begin()) return false;
  const auto& [run, one] = *std::prev(behind);
  return run.first == id && hit.offset - run.second < one.length && shared.in_reach(one.ring_offset) &&
         !shared.given_up(one.ring_offset + (hit.offset - run.second));
}

void DiskTier::forget_out_of_reach() {
  const SharedHistory& shared = *encoder_.shared();
  while (!announced_.empty() && !shared.in_reach(announced_.begin()->first)) {
    const auto [ring_offset, load] = *announced_.begin();
    announced_.erase(announced_.begin());
    const auto known = loaded_.find(load.run);
    if (known != loaded_.end() && known->second.ring_offset == ring_offset) loaded_.erase(known);
  }
}

void DiskTier::look_up(std::uint64_t stream, Flow& flow, Bytes plain) {
  find_hooks(plain, hooks_);
  fingerprints_.clear();
  hits_.clear();
  for (const Hook& hook : hooks_) fingerprints_.push_back(hook.fingerprint);
  store_.find(fingerprints_, common_.links(), hits_);
  // The segment with the most hits, the last one if several: the content behind it is likely to come next.
  std::map<Id, std::pair<std::size_t, const HookHit*>> votes;
  std::pair<std::size_t, const HookHit*> best{0, nullptr};
  for (const HookHit& hit : hits_) {
    const Id id = CommonSegments::id_of(hit.name);
    const SegmentName* both = common_.common(id);
    if (!both || *both != hit.name || in_memory(id, hit)) continue;
    auto& vote = votes[id];
    vote = {vote.first + 1, &hit};
    if (vote.first >= best.first) best = vote;
  }
  // A stream with useless hits needs more of them.
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

// Keeps `ahead` bytes before the next block; twice as many while they are of use.
void DiskTier::ask_ahead(std::uint64_t stream, Flow& flow) {
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
    const Id id = CommonSegments::id_of(cursor.segment);
    if (!common_.common(id)) {  // any more
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

void DiskTier::on_loaded(LoadId load, std::optional<Slice> bytes) {
  if (auto bringing = bringing_.find(load); bringing != bringing_.end()) {
    Bringing one = bringing->second;
    bringing_.erase(bringing);
    bringing_bytes_ -= one.length;
    brought_one(one, std::move(bytes));
    return start_loads();
  }
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

// Whether the stream still reads where this was requested.
bool DiskTier::wanted(const Flow& flow, const Asked& asked) {
  return flow.cursor && flow.cursor->serial == asked.serial;
}

void DiskTier::append_loaded(const Asked& asked, Flow& flow, Bytes bytes) {
  Cursor& cursor = *flow.cursor;
  std::uint32_t offset = asked.offset;
  Buffer loads;
  ByteWriter writer(loads);
  std::optional<Piece> run;
  forget_out_of_reach();
  auto end_run = [&] {
    if (!run) return;
    writer.fixed64(asked.segment);
    writer.varint(offset);
    writer.varint(run->length);
    writer.varint(run->ring_offset);
    loaded_[{asked.segment, offset}] = {run->length, run->ring_offset};
    announced_[run->ring_offset] = {
        .run = {asked.segment, offset}, .length = run->length, .stream = asked.stream};
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

// ---------------------------------------------------------------------------- what the twin sends

Result<DiskTier::Brought> DiskTier::bring(std::uint64_t stream, const BlockHeader& sent, Bytes encoded) {
  if (auto known = brought_.find(stream); known != brought_.end())
    return known->second == 0 ? Brought::done : Brought::waits;
  auto placed = decoder_.placed(stream, sent);
  if (!placed) return placed.error();
  const BlockHeader& header = *placed;
  auto block = parse_encoded(header, encoded);
  if (!block) return block.error();
  dedup::HistoryRing* ring = decoder_.ring();
  if (!ring) return Error::malformed_block;
  std::vector<Bringing> wanted;
  std::uint64_t total = 0;
  for (ByteReader in(block->loads); in.remaining();) {
    auto id = in.fixed64();
    auto offset = in.varint(), length = in.varint(), ring_offset = in.varint();
    if (!id || !offset || !length || !ring_offset || *length == 0 || *length > kLoadBytes ||
        *offset > kMaxSegmentBytes || *ring_offset < kRingStart ||
        *ring_offset + *length > header.ring_offset)
      return Error::malformed_block;
    total += *length;
    if (wanted.size() == kMaxLoads || total > kMaxLoadedBytes) return Error::malformed_block;
    wanted.push_back({stream, *ring_offset, static_cast<std::uint32_t>(*length), *id,
                      static_cast<std::uint32_t>(*offset)});
  }
  if (cannot_.size() > kMaxCannot || to_bring_.size() > kMaxToBring) return Error::malformed_block;
  // One more, so that the stream is not reported as ready before this returns.
  std::size_t& under_way = brought_[stream] = wanted.size() + 1;
  to_bring_.insert(to_bring_.end(), wanted.begin(), wanted.end());
  start_loads();
  return --under_way == 0 ? Brought::done : Brought::waits;
}

void DiskTier::start_loads() {
  while (!to_bring_.empty() && bringing_bytes_ < kBroughtAtOnce) {
    const Bringing one = to_bring_.front();
    to_bring_.pop_front();
    const SegmentName* name = common_.own(one.segment);
    if (!name || !decoder_.ring()->fits(one.ring_offset, one.length)) {
      brought_one(one, std::nullopt);
      continue;
    }
    bringing_bytes_ += one.length;
    bringing_[store_.load(*name, one.offset, one.length)] = one;
  }
}

// A failed load is reported; the block that needs it will be requested again.
void DiskTier::brought_one(const Bringing& one, std::optional<Slice> bytes) {
  if (!bytes || !decoder_.bring(one.ring_offset, bytes->bytes())) {
    decoder_.leave_out({one.ring_offset, one.ring_offset + one.length});
    Buffer message;
    ByteWriter writer(message);
    writer.u8(kCannot);
    writer.fixed64(one.segment);
    writer.varint(one.ring_offset);
    writer.varint(one.length);
    cannot_.push_back(Slice::copy_of(message));
  }
  auto waiting = brought_.find(one.stream);
  if (waiting != brought_.end() && waiting->second > 0 && --waiting->second == 0)
    ready_.push_back(one.stream);
}

std::optional<std::uint64_t> DiskTier::poll_ready() {
  if (ready_.empty()) return std::nullopt;
  std::uint64_t stream = ready_.front();
  ready_.pop_front();
  return stream;
}

}  // namespace longhaul::reduction
