// SPDX-License-Identifier: Apache-2.0
// See unfinished_promises.h.
#include "proxy/modules/smb/smb2/unfinished_promises.h"

#include <algorithm>

namespace longhaul::smb::smb2 {

void UnfinishedPromises::add(const FileGroupRef& file, Sequence sequence) {
  OfFile& promises = files_[file.get()];
  promises.file = file;
  promises.all.insert(sequence);
  promises.others.insert(sequence);
  all_.insert(sequence);
}

void UnfinishedPromises::is_write(const FileGroupRef& file, Sequence sequence, std::uint64_t offset,
                                  std::uint32_t length) {
  OfFile& promises = files_.at(file.get());
  promises.others.erase(sequence);
  promises.writes.emplace(offset, Write{sequence, length});
  promises.longest_write = std::max<std::uint64_t>(promises.longest_write, length);
}

void UnfinishedPromises::remove(const FileGroupRef& file, Sequence sequence,
                                std::optional<std::uint64_t> offset) {
  all_.erase(sequence);
  const auto found = files_.find(file.get());
  if (found == files_.end()) return;
  OfFile& promises = found->second;
  promises.all.erase(sequence);
  promises.others.erase(sequence);
  if (offset) {
    const auto [first, last] = promises.writes.equal_range(*offset);
    const auto entry =
        std::find_if(first, last, [&](const auto& each) { return each.second.sequence == sequence; });
    if (entry != last) promises.writes.erase(entry);
  }
  if (promises.all.empty()) files_.erase(found);
}

// Whether a WRITE before the sequence overlaps the range. Examines only a few of them, and returns true if
// there are more: all of them will soon be completed.
bool UnfinishedPromises::overlap(const OfFile& promises, const OrderScope& scope, Sequence sequence) {
  constexpr int kMostSteps = 64;
  int steps = 0;
  const std::uint64_t from = scope.offset - std::min(scope.offset, promises.longest_write);
  for (auto each = promises.writes.lower_bound(from); each != promises.writes.end(); ++each) {
    if (each->first >= scope.offset && each->first - scope.offset >= scope.length) return false;
    const Write& write = each->second;
    if (write.sequence < sequence &&
        (each->first >= scope.offset || scope.offset - each->first < write.length)) {
      return true;
    }
    if (++steps == kMostSteps) return true;
  }
  return false;
}

bool UnfinishedPromises::hold_up(const OrderScope& scope, Sequence sequence) const {
  if (scope.kind == OrderScope::Kind::nothing) return false;
  if (scope.is_barrier()) return before(all_, sequence);
  const auto found = files_.find(scope.file.get());
  if (found == files_.end() || !before(found->second.all, sequence)) return false;
  if (scope.kind == OrderScope::Kind::file) return true;
  // A CLOSE in progress: no more requests come through this open, but for others the file is still open.
  return before(found->second.others, sequence) || overlap(found->second, scope, sequence);
}

bool UnfinishedPromises::any_before(const FileGroup& file, Sequence sequence) const {
  const auto first = first_of(file);
  return first && *first < sequence;
}

std::optional<UnfinishedPromises::Sequence> UnfinishedPromises::first_of(const FileGroup& file) const {
  const auto found = files_.find(&file);
  if (found == files_.end() || found->second.all.empty()) return std::nullopt;
  return *found->second.all.begin();
}

}  // namespace longhaul::smb::smb2
