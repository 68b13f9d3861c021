// SPDX-License-Identifier: Apache-2.0
// The index, in memory, of a disk store of objects: which object is in which file, the objects of a name, and
// which was used least recently. disk_objects.h writes and removes the files.
#pragma once
#include <list>
#include <set>
#include <unordered_map>
#include <vector>

#include "cache/object_file.h"

namespace longhaul::cache {

class ObjectIndex {
 public:
  using Id = std::uint64_t;  // the number of the file
  struct Entry {
    SaltedLabel object;
    bool is_sure = false, is_written = false;
  };
  // An object's size on disk, and in memory including the nodes of the index.
  static std::uint64_t disk_bytes_of(const ObjectLabel& label);
  static std::uint64_t memory_bytes_of(const ObjectLabel& label);

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  std::uint64_t disk_bytes() const { return disk_bytes_; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

  // The object must not be there yet; it is the most recently used one.
  void add(Id id, Entry entry);
  void remove(Id id);
  // Null: there is none.
  const Entry* find(Id id) const;
  const Entry& at(Id id) const { return entries_.at(id).entry; }
  std::vector<Id> of_name(const ObjectName& name) const;  // the oldest first
  // There must be one.
  Id least_recently_used() const { return by_use_.front(); }
  const std::list<Id>& by_use() const { return by_use_; }  // the latest last

  void was_used(Id id);
  void was_written(Id id) { entries_.at(id).entry.is_written = true; }
  // No object that is here now counts as certain any more.
  void doubt_all();

 private:
  struct Node {
    Entry entry;
    std::list<Id>::iterator used;
  };

  std::unordered_map<Id, Node> entries_;
  std::set<std::pair<ObjectName, Id>> by_name_;
  std::list<Id> by_use_;
  std::uint64_t disk_bytes_ = 0, memory_bytes_ = 0;
};

}  // namespace longhaul::cache
