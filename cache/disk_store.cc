// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_store.h"

#include <algorithm>
#include <bit>

namespace longhaul::cache {
namespace {

constexpr std::size_t kEventsAtOnce = 16;  // each may bring thousands of hooks: about a millisecond in all
constexpr std::uint64_t kTryFolderEvery = 64;  // puts; there is no clock here

std::vector<Hook> thinned(std::vector<Hook> hooks, std::uint32_t length) {
  std::erase_if(hooks, [&](const Hook& hook) { return hook.offset >= length; });
  std::size_t most = max_hooks(length);
  if (hooks.size() <= most) return hooks;
  std::vector<Hook> fewer;
  fewer.reserve(most);
  for (std::size_t i = 0; i < most; ++i) fewer.push_back(hooks[i * hooks.size() / most]);
  return fewer;
}

}  // namespace

DiskStore::DiskStore(DiskStoreOptions options)
    : options_(std::move(options)),
      limit_(options_.cap_bytes),
      inventory_(limit_.inventory()),
      queue_(options_.queue_bytes),
      threads_({.path = options_.directory,
                .key_file = options_.key_file,
                .credential = options_.credential,
                .files = options_.files,
                .open_catalogue = options_.open_catalogue,
                .note = {}},
               options_.wake) {
  start();
}

void DiskStore::attach(reduction::SegmentListener& listener) { listeners_.attach(listener); }

void DiskStore::detach(reduction::SegmentListener& listener) { listeners_.detach(listener); }

DiskStore::Put DiskStore::put(const SegmentName& name, std::vector<Slice> parts, std::vector<Hook> hooks) {
  std::size_t size = 0;
  for (const Slice& part : parts) size += part.size();
  auto refuse = [&] {
    ++counters_.refused;
    counters_.refused_bytes += size;
    return Put::refused;
  };
  if (state_ == State::unusable && ++puts_without_folder_ % kTryFolderEvery == 0) start();
  if (size != name.length || size == 0 || size > reduction::kMaxSegmentBytes) return refuse();
  if (inventory_.find(name) != kNoSlot) return Put::present;
  if (state_ != State::ready || !queue_.fits(name.sites(), size)) return refuse();
  while (inventory_.count_of(name.sites()) >= reduction::kMaxSegmentsOfLink)
    drop_slot(inventory_.next_to_go_of(name.sites()), File::remove);
  hooks = thinned(std::move(hooks), name.length);
  std::uint64_t file_bytes = segment_file_bytes(name.length, hooks.size());
  if (!make_room(disk_bytes(file_bytes))) return refuse();
  Slot slot = inventory_.add(name, last_number_ + 1, static_cast<std::uint32_t>(disk_bytes(file_bytes)),
                             Inventory::State::writing);
  if (slot == kNoSlot) return refuse();
  ++last_number_;
  ++counters_.put;
  counters_.put_bytes += size;
  queue_.add(name.sites(), size);
  Record record{.number = last_number_, .file_bytes = file_bytes, .name = name, .hooks = std::move(hooks)};
  threads_.write(slot, std::move(record), std::move(parts));
  return Put::taken;
}

void DiskStore::drop(const SegmentName& name) {
  if (Slot slot = inventory_.find(name)) drop_slot(slot, File::remove);
}

std::uint64_t DiskStore::clear() {
  std::uint64_t bytes = 0;
  while (Slot slot = inventory_.next_to_go()) {
    bytes += inventory_.at(slot).name.length;
    drop_slot(slot, File::gone);
  }
  cleared_key_ = ClearedKey::pending;
  threads_.clear(++clears_);
  if (state_ == State::starting) start();  // results that are still being read are dropped
  return bytes;
}

std::vector<SegmentName> DiskStore::list() const {
  std::vector<SegmentName> names;
  inventory_.each_readable([&](Slot, const Inventory::Segment& segment) { names.push_back(segment.name); });
  return names;
}

std::vector<SegmentName> DiskStore::list(std::span<const reduction::SiteId> sites) const {
  std::vector<SegmentName> names;
  inventory_.each_readable(sites, [&](const Inventory::Segment& segment) { names.push_back(segment.name); });
  return names;
}

void DiskStore::find(std::span<const std::uint64_t> fingerprints, std::span<const reduction::SitePair> links,
                     std::vector<reduction::HookHit>& hits) {
  counters_.lookups += fingerprints.size();
  hooks_.find(fingerprints, links,
              [&](std::uint32_t i, const reduction::SitePair& link, LinkHooks::Place place) {
                const Inventory::Segment& segment = inventory_.at(place.slot);
                // A wrong hit may be another link's, or lie behind the end of a short segment.
                if (segment.state != Inventory::State::readable || place.offset >= segment.name.length ||
                    segment.name.sites() != link)
                  return;
                hits.push_back({i, segment.name, place.offset});
                ++counters_.hits;
              });
}

reduction::LoadId DiskStore::load(const SegmentName& name, std::uint32_t offset, std::uint32_t size,
                                  reduction::SegmentListener& listener) {
  ++counters_.loads;
  Slot slot = inventory_.find(name);
  const bool possible = slot != kNoSlot && inventory_.at(slot).state == Inventory::State::readable &&
                        size > 0 && offset < name.length && size <= name.length - offset &&
                        listeners_.loading_bytes() + size <= options_.loading_bytes;
  const reduction::LoadId id = listeners_.begin_load(listener, possible ? size : 0);
  if (!possible) {
    threads_.refuse(id);
    return id;
  }
  threads_.read(id, slot, inventory_.at(slot).number, name, offset, size);
  return id;
}

bool DiskStore::poll() {
  std::vector<SegmentThreads::Event> events;
  events.swap(taken_);
  bool more = threads_.take(kEventsAtOnce, events);
  events_ += events.size();
  for (auto& event : events) std::visit([this](auto& known) { on(known); }, event);
  events.clear();
  taken_.swap(events);  // its memory, for the next time
  listeners_.sweep();
  return more;
}

void DiskStore::settle() {
  // A listener may request more: done when a round causes no notification.
  for (;;) {
    bool idle = !threads_.busy();
    std::uint64_t before = events_;
    while (poll()) {
    }
    if (idle && events_ == before) return;
    std::this_thread::yield();
  }
}

StoreCounters DiskStore::counters() const {
  StoreCounters counters = counters_;
  counters.ready = state_ == State::ready;
  counters.cap_bytes = limit_.cap_bytes();
  counters.disk_bytes = inventory_.disk_bytes() + limit_.overhead_bytes();
  counters.queued_bytes = queue_.queued_bytes();
  counters.memory_bytes = hooks_.memory_bytes() + inventory_.memory_bytes();
  counters.segments = inventory_.count();
  return counters;
}

void DiskStore::start() {
  state_ = State::starting;
  found_.clear();
  threads_.start(++starts_);
}

// Listeners are informed after all segments are known and fit under the limit.
void DiskStore::on(Found& found) {
  if (found.start != starts_) return;
  Record& record = found.record;
  last_number_ = std::max(last_number_, record.number);
  last_stamp_ = std::max(last_stamp_, record.stamp);
  if (Slot older = inventory_.find(record.name)) drop_slot(older, File::remove);
  Slot slot =
      inventory_.add(record.name, record.number, static_cast<std::uint32_t>(disk_bytes(record.file_bytes)),
                     Inventory::State::writing);
  if (slot == kNoSlot) return;
  insert_hooks(slot, record.hooks);
  found_.push_back({slot, record.number, record.stamp});
}

void DiskStore::on(Started& started) {
  limit_.set_overhead(started.overhead);
  if (started.start != starts_) return;
  if (started.usable) {
    become_ready();
  } else {
    state_ = State::unusable;
    forget_all();
  }
}

void DiskStore::become_ready() {
  state_ = State::ready;
  std::erase_if(found_, [this](const Listed& listed) { return !inventory_.is(listed.slot, listed.number); });
  for (const Listed& listed : found_) inventory_.was_used(listed.slot, listed.stamp);
  inventory_.order();
  make_room(0);
  std::vector<Listed> found;
  found.swap(found_);
  for (const Listed& listed : found) {
    if (!inventory_.is(listed.slot, listed.number)) continue;
    inventory_.make_readable(listed.slot);
    listeners_.tell([name = inventory_.at(listed.slot).name](auto& listener) { listener.on_stored(name); });
  }
}

void DiskStore::on(Written& written) {
  const Record& record = written.record;
  limit_.set_overhead(written.overhead);
  queue_.remove(record.name.sites(), record.name.length);
  if (written.result == SegmentFolder::Written::wrong_digest) ++counters_.wrong_digest;
  if (written.result == SegmentFolder::Written::failed) ++counters_.failed;
  if (written.result == SegmentFolder::Written::lost) {
    ++counters_.failed;
    // Every write in the queue reports it; the first report acts.
    if (state_ == State::ready) {
      start();  // listeners that are notified here find nothing stored
      forget_all();
    }
    return;
  }
  if (inventory_.is(written.slot, record.number)) {
    if (written.result == SegmentFolder::Written::done) {
      insert_hooks(written.slot, record.hooks);
      inventory_.make_readable(written.slot);
      listeners_.tell([&](auto& listener) { listener.on_stored(record.name); });
    } else {
      drop_slot(written.slot, File::gone);
    }
  }
  make_room(0);
}

void DiskStore::on(Cleared& cleared) {
  limit_.set_overhead(cleared.overhead);
  if (cleared.clear == clears_)
    cleared_key_ = cleared.key_destroyed ? ClearedKey::destroyed : ClearedKey::kept;
}

void DiskStore::on(Removed& removed) {
  limit_.set_overhead(removed.overhead);
  make_room(0);
}

void DiskStore::on(Loaded& loaded) {
  const Listeners::Load load = listeners_.end_load(loaded.load);
  bool known = loaded.slot != kNoSlot && inventory_.is(loaded.slot, loaded.number);
  if (loaded.bytes) {
    counters_.load_bytes += load.size;
    if (known && inventory_.use(loaded.slot, last_stamp_ + 1)) {
      ++last_stamp_;
      threads_.use(loaded.number, last_stamp_);
    }
  } else {
    ++counters_.loads_failed;
    if (known) {
      // If the whole disk is gone, each requested segment would be logged.
      ++counters_.damaged;
      if (options_.log && std::has_single_bit(counters_.damaged))
        options_.log("a segment cannot be read and is discarded (" + loaded.bytes.error().message() + "), " +
                     std::to_string(counters_.damaged) + " so far");
      drop_slot(loaded.slot, File::remove);
    }
  }
  if (!load.listener) return;
  load.listener->on_loaded(loaded.load,
                           loaded.bytes ? std::optional(std::move(*loaded.bytes)) : std::nullopt);
}

void DiskStore::on(Note& note) {
  if (options_.log) options_.log(note.line);
}

void DiskStore::insert_hooks(Slot slot, const std::vector<Hook>& hooks) {
  hooks_.insert(inventory_.at(slot).name.sites(), slot, hooks);
  while (Slot swept = hooks_.poll_swept()) inventory_.release(swept);
}

bool DiskStore::make_room(std::uint64_t bytes) {
  if (state_ != State::ready || (bytes > 0 && !limit_.fits_alone(bytes))) return false;
  for (;;) {
    const auto exceeded = limit_.exceeded(inventory_.disk_bytes() + bytes, inventory_.count() + (bytes > 0));
    if (!exceeded) return true;
    Slot slot = inventory_.next_to_go(*exceeded);
    if (slot == kNoSlot) return false;
    ++counters_.made_room;
    drop_slot(slot, File::remove);
  }
}

void DiskStore::drop_slot(Slot slot, File file) {
  Inventory::Segment segment = inventory_.at(slot);
  inventory_.retire(slot);
  hooks_.retire(slot);
  if (segment.state == Inventory::State::readable)
    listeners_.tell([&](auto& listener) { listener.on_dropped(segment.name); });
  if (file == File::remove) threads_.remove(segment.number, segment.disk_bytes);
  if (inventory_.count() > 0) return;
  hooks_.clear();
  inventory_.release_all();
}

void DiskStore::forget_all() {
  found_.clear();
  while (Slot slot = inventory_.next_to_go()) {
    ++counters_.lost;
    drop_slot(slot, File::gone);
  }
}

}  // namespace longhaul::cache
