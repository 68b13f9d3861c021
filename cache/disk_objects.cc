// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_objects.h"

#include <algorithm>
#include <bit>

#include "cache/error.h"

namespace longhaul::cache {
namespace {

constexpr std::size_t kObjectEventsAtOnce = 64;
constexpr std::size_t kLabelsAhead = 1024;      // that a start reads ahead of poll()
constexpr std::uint64_t kTryObjectsEvery = 64;  // puts; there is no clock here
constexpr int kObjectNiceness = 5;              // requests that a client waits for go first

ObjectFolder::Options with_note(ObjectFolder::Options options, std::function<void(std::string)> note) {
  options.note = std::move(note);
  return options;
}

}  // namespace

DiskObjects::DiskObjects(DiskObjectsOptions options)
    : options_(std::move(options)),
      folder_(with_note(options_.folder, [this](std::string line) { mailbox_.put(Note{std::move(line)}); })),
      mailbox_(options_.wake),
      writer_("objects-write", kObjectNiceness),
      reader_("objects-read") {
  start();
}

DiskObjects::~DiskObjects() {
  ending_ = true;
  mailbox_.close();
  if (state_ != State::ready) return;
  std::vector<ListedObject> list;
  for (const Id id : index_.by_use())
    if (const ObjectIndex::Entry& entry = index_.at(id); entry.is_sure)
      list.push_back({id, entry.object.salt});
  writer_.post([this, list = std::move(list)]() mutable { folder_.leave(std::move(list)); });
}

void DiskObjects::start() {
  state_ = State::starting;
  erased_.clear();
  erased_too_many_ = false;
  writer_.post([this, round = ++rounds_] {
    const bool usable = folder_.start(
        [&](ObjectFolder::Found&& found) {
          mailbox_.put_below(kLabelsAhead, FoundEvent{round, std::move(found)});
        },
        ending_);
    mailbox_.put(Started{round, usable, folder_.stuck_bytes()});
  });
}

std::optional<DiskObjects::Found> DiskObjects::find(std::string_view name, const Fits& fits) const {
  if (state_ != State::ready || index_.empty()) return std::nullopt;
  const std::vector<Id> ids = index_.of_name(object_name(name));
  for (auto id = ids.rbegin(); id != ids.rend(); ++id)
    if (const ObjectIndex::Entry& entry = index_.at(*id);
        entry.is_written && fits(entry.object.label.tag, entry.is_sure))
      return Found{*id, entry.object.label.bytes, entry.is_sure};
  return std::nullopt;
}

void DiskObjects::put(std::string_view name, Buffer tag, std::vector<Slice> parts) {
  std::uint64_t size = 0;
  for (const Slice& part : parts) size += part.size();
  SaltedLabel object{.label = {.name = object_name(name), .tag = std::move(tag)}};
  if (state_ == State::unusable && ++puts_without_folder_ % kTryObjectsEvery == 0) start();
  erase(name, object.label.tag);
  const auto salt = draw_salt();
  const bool fits = size <= kMostObjectBytes && object.label.tag.size() <= kMostTagBytes &&
                    state_ == State::ready && salt && counters_.queued_bytes + size <= options_.queue_bytes;
  object.label.bytes = fits ? static_cast<std::uint32_t>(size) : 0;
  if (!fits || ObjectIndex::disk_bytes_of(object.label) > options_.cap_bytes / 8 ||
      !make_room(ObjectIndex::disk_bytes_of(object.label), ObjectIndex::memory_bytes_of(object.label))) {
    ++counters_.refused;
    return;
  }
  if (const auto ids = index_.of_name(object.label.name); ids.size() >= kMostOfName)
    drop(ids.front(), File::remove);
  object.salt = *salt;
  const Id id = ++last_id_;
  ++counters_.put;
  counters_.put_bytes += size;
  counters_.queued_bytes += size;
  index_.add(id, {.object = object, .is_sure = true});
  writer_.post([this, id, object = std::move(object), parts = std::move(parts)]() mutable {
    const bool done = folder_.write(id, object, parts);
    parts.clear();
    mailbox_.put(Written{id, object.label.bytes, done, folder_.stuck_bytes()});
  });
}

// What is erased while the directory is read is not found yet.
void DiskObjects::note_erasure(const ObjectName& name) {
  if (state_ != State::starting) return;
  if (erased_.size() < kErasuresKnown)
    erased_.insert(name);
  else
    erased_too_many_ |= !erased_.contains(name);
}

void DiskObjects::erase(std::string_view name) {
  const ObjectName digest = object_name(name);
  note_erasure(digest);
  for (const Id id : index_.of_name(digest)) drop(id, File::remove);
}

void DiskObjects::erase(std::string_view name, Bytes tag) {
  const ObjectName digest = object_name(name);
  note_erasure(digest);
  for (const Id id : index_.of_name(digest))
    if (std::ranges::equal(index_.at(id).object.label.tag, tag)) drop(id, File::remove);
}

bool DiskObjects::read(Id id, Done done) {
  const ObjectIndex::Entry* const entry = index_.find(id);
  if (!entry || !entry->is_written) return false;
  const std::uint32_t bytes = entry->object.label.bytes;
  if (loading_bytes_ + bytes > options_.loading_bytes) return false;
  index_.was_used(id);
  loading_bytes_ += bytes;
  ++counters_.reads;
  reader_.post([this, id, object = entry->object, done = std::move(done)]() mutable {
    auto content = folder_.read(id, object);
    mailbox_.put(Read{id, object.label.bytes, std::move(done), std::move(content)});
  });
  return true;
}

std::uint64_t DiskObjects::clear() {
  std::uint64_t bytes = 0;
  while (!index_.empty()) {
    bytes += index_.at(index_.least_recently_used()).object.label.bytes;
    drop(index_.least_recently_used(), File::gone);
  }
  cleared_key_ = ClearedKey::pending;
  writer_.post([this, clear = ++clears_] {
    const bool destroyed = folder_.clear();
    mailbox_.put(Cleared{clear, destroyed, folder_.stuck_bytes()});
  });
  if (state_ == State::starting) start();  // results that are still being read are dropped
  return bytes;
}

bool DiskObjects::poll() {
  std::vector<Event> events;
  const bool more = mailbox_.take(kObjectEventsAtOnce, events);
  events_ += events.size();
  for (Event& event : events) std::visit([this](auto& known) { on(known); }, event);
  return more;
}

void DiskObjects::settle() {
  for (;;) {
    const bool idle = !writer_.busy() && !reader_.busy();
    const std::uint64_t before = events_;
    while (poll()) {
    }
    if (idle && events_ == before) return;
    std::this_thread::yield();
  }
}

ObjectCounters DiskObjects::counters() const {
  ObjectCounters counters = counters_;
  counters.ready = state_ == State::ready;
  counters.cap_bytes = options_.cap_bytes;
  counters.disk_bytes = index_.disk_bytes() + stuck_bytes_;
  counters.memory_bytes = memory_bytes();
  counters.objects = index_.size();
  return counters;
}

void DiskObjects::on(FoundEvent& event) {
  ObjectFolder::Found& found = event.found;
  last_id_ = std::max(last_id_, found.number);
  if (event.round != rounds_) return;
  const ObjectLabel& label = found.object.label;
  const auto same = [&] {
    const auto ids = index_.of_name(label.name);
    const auto at =
        std::ranges::find_if(ids, [&](Id id) { return index_.at(id).object.label.tag == label.tag; });
    return at == ids.end() ? Id{0} : *at;
  };
  const Id older = same();
  // Of two, the one that is certain, or else the newer one.
  const bool is_beaten = older != 0 && (index_.at(older).is_sure != found.is_sure ? index_.at(older).is_sure
                                                                                  : older > found.number);
  if (erased_.contains(label.name) || is_beaten) {
    writer_.post([this, number = found.number, bytes = object_file_bytes(label.bytes)] {
      folder_.remove(number, bytes);
      mailbox_.put(Removed{folder_.stuck_bytes()});
    });
    return;
  }
  if (older != 0) drop(older, File::remove);
  index_.add(found.number, {.object = std::move(found.object), .is_sure = found.is_sure, .is_written = true});
}

void DiskObjects::on(Started& event) {
  stuck_bytes_ = event.stuck;
  if (event.round != rounds_) return;
  if (erased_too_many_) index_.doubt_all();
  // Erased after it was found.
  for (const ObjectName& name : erased_)
    for (const Id id : index_.of_name(name)) drop(id, File::remove);
  erased_.clear();
  state_ = event.usable ? State::ready : State::unusable;
  if (event.usable)
    make_room(0, 0);
  else
    while (!index_.empty()) drop(index_.least_recently_used(), File::gone);
}

void DiskObjects::on(Written& event) {
  stuck_bytes_ = event.stuck;
  counters_.queued_bytes -= event.bytes;
  if (!event.done) ++counters_.failed;
  if (!index_.find(event.id)) return;
  if (event.done)
    index_.was_written(event.id);
  else
    drop(event.id, File::gone);
}

void DiskObjects::on(Removed& event) { stuck_bytes_ = event.stuck; }

void DiskObjects::on(Read& event) {
  loading_bytes_ -= event.bytes;
  const bool is_known = index_.find(event.id) != nullptr;
  if (!event.content) {
    ++counters_.reads_failed;
    if (is_known) {
      ++counters_.damaged;
      // If the whole disk is gone, each requested object would be logged.
      if (options_.log && std::has_single_bit(counters_.damaged))
        options_.log("a stored object cannot be read and is discarded (" + event.content.error().message() +
                     "), " + std::to_string(counters_.damaged) + " so far");
      drop(event.id, File::remove);
    }
  } else {
    counters_.read_bytes += event.bytes;
  }
  event.done(event.content && is_known ? std::optional(std::move(*event.content)) : std::nullopt);
}

void DiskObjects::on(Cleared& event) {
  stuck_bytes_ = event.stuck;
  if (event.clear == clears_) cleared_key_ = event.key_destroyed ? ClearedKey::destroyed : ClearedKey::kept;
}

void DiskObjects::on(Note& event) {
  if (options_.log) options_.log(event.line);
}

void DiskObjects::drop(Id id, File file) {
  if (file == File::remove)
    writer_.post([this, id, bytes = object_file_bytes(index_.at(id).object.label.bytes)] {
      folder_.remove(id, bytes);
      mailbox_.put(Removed{folder_.stuck_bytes()});
    });
  index_.remove(id);
}

bool DiskObjects::make_room(std::uint64_t bytes, std::uint64_t index_bytes) {
  const auto is_full = [&] {
    return index_.disk_bytes() + stuck_bytes_ + bytes > options_.cap_bytes ||
           index_.memory_bytes() + index_bytes > options_.index_bytes;
  };
  while (is_full() && !index_.empty()) {
    ++counters_.evicted;
    drop(index_.least_recently_used(), File::remove);
  }
  return !is_full();
}

}  // namespace longhaul::cache
