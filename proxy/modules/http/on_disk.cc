// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/on_disk.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace longhaul::http {
namespace {

// The first byte of a tag has flags (stored_record.cc); a response replaces those that differ in nothing
// else.
constexpr unsigned kTagFlags = 4;

bool is_never_fresh(const Stored& stored) { return stored.validate_always || stored.lifetime <= stored.age_then; }

link::TimePoint fresh_until(const Stored& stored) {
  return is_never_fresh(stored) ? link::TimePoint{}
                                : stored.received + std::chrono::seconds(stored.lifetime - stored.age_then);
}

// A hash of what a validation may change, except the dates. It may also reorder fields.
std::size_t hash_of_fields(const Stored& stored) {
  std::vector<std::string> fields;
  for (const Field& field : stored.fields.all()) {
    std::string text = lower(field.name);
    if (text != "date" && text != "age" && text != "expires") fields.push_back(((text += '\0') += field.value) += '\0');
  }
  std::ranges::sort(fields);
  std::string all;
  for (const std::string& field : fields) all += field;
  return std::hash<std::string>{}(all);
}

// Writing a response again whenever the server has confirmed it would wear out the disk. The existing copy is
// sufficient even if it becomes stale earlier, but not much earlier, and has the same fields.
bool is_as_good(const Stored::Copy& copy, const Stored& stored, const Stored::Copy& would_be) {
  if (copy.fields != would_be.fields || would_be.fresh_until < copy.fresh_until) return false;
  return is_never_fresh(stored) ||
         would_be.fresh_until - copy.fresh_until < std::chrono::seconds(stored.lifetime) / 2;
}

}  // namespace

OnDisk::OnDisk(modules::Objects& objects, ObjectStore& memory, std::function<Clocks()> clocks)
    : objects_(objects), memory_(memory), clocks_(std::move(clocks)) {
  memory_.use(this);
}

OnDisk::~OnDisk() { memory_.use(nullptr); }

std::optional<OnDisk::Asked> OnDisk::ask(const std::string& key, const RequestHead& request) {
  const bool may_be_asked = may_ask(request);
  const auto found = objects_.find(key, [&](Bytes tag, bool is_sure) {
    return (is_sure || may_be_asked) && tag_fits(tag, request, !is_sure);
  });
  if (!found) return std::nullopt;
  const link::TimePoint now = clocks_().now;
  if (const auto coming = reading_.find(found->id); coming != reading_.end())
    return now - coming->second < DiskWait::kMost ? std::optional(found->id) : std::nullopt;
  const bool begun = objects_.read(
      found->id, [this, alive = std::weak_ptr<int>(alive_), id = found->id, is_sure = found->is_sure, key,
                  request](std::optional<Slice> bytes) {
        if (!alive.expired()) arrived(id, is_sure, key, request, bytes ? &*bytes : nullptr);
      });
  if (!begun) return std::nullopt;
  reading_.emplace(found->id, now);
  return found->id;
}

void OnDisk::arrived(Asked asked, bool is_sure, const std::string& key, const RequestHead& request, const Slice* bytes) {
  reading_.erase(asked);
  if (!bytes) return;
  auto stored = read_stored(*bytes, request, is_sure, clocks_());
  if (!stored) return objects_.erase(key);
  stored->copy = Stored::Copy{.fresh_until = fresh_until(*stored), .fields = hash_of_fields(*stored)};
  // A response that has arrived from the server meanwhile is newer, and has replaced what was read.
  if (!memory_.find(key, request)) memory_.keep(key, *std::move(stored));
}

void OnDisk::erase_alike(const std::string& key, Buffer tag, bool all) {
  const auto own = std::to_integer<unsigned>(tag.front());
  for (unsigned flags = 0; flags < kTagFlags; ++flags) {
    if (flags == own && !all) continue;
    tag.front() = std::byte(flags);
    objects_.erase(key, tag);
  }
}

void OnDisk::put(const std::string& key, Stored& stored) {
  auto tag = tag_of(stored);
  if (!tag) return;
  if (stored.in_memory_only) {
    stored.copy.reset();
    return erase_alike(key, *std::move(tag), true);
  }
  const Stored::Copy would_be{.fresh_until = fresh_until(stored), .fields = hash_of_fields(stored)};
  const auto is_tag = [&](Bytes each, bool is_sure) { return is_sure && std::ranges::equal(each, *tag); };
  if (stored.copy && is_as_good(*stored.copy, stored, would_be) && objects_.find(key, is_tag)) return;
  stored.copy = would_be;
  erase_alike(key, *tag, false);
  std::vector<Slice> parts{Slice::copy_of(write_stored(stored, clocks_()))};
  parts.insert(parts.end(), stored.content.begin(), stored.content.end());
  objects_.put(key, *std::move(tag), std::move(parts));
}

bool DiskWait::must_wait(link::TimePoint now, OnDisk& disk, ObjectStore& memory, const std::string& key,
                         const RequestHead& request) {
  if (!std::exchange(has_looked_, true)) {
    if (!may_answer(request) || memory.find(key, request)) return false;
    asked_ = disk.ask(key, request);
    since_ = now;
  }
  return asked_ && disk.is_coming(*asked_) && now - since_ < kMost;
}

}  // namespace longhaul::http
