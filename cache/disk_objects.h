// SPDX-License-Identifier: Apache-2.0
// Whole objects on a disk: decides which are kept and evicted. Written behind: put() returns at once, and
// what was queued is lost with the process. Disk input and output happens on two threads, one that writes and
// one that reads; the store itself is used on its owner's thread, never blocks it and has no clock.
// object_folder.h handles the files.
#pragma once
#include <list>
#include <set>
#include <unordered_map>
#include <variant>

#include "cache/object_folder.h"
#include "cache/store_counters.h"
#include "cache/unusable.h"
#include "cache/worker.h"

namespace longhaul::cache {

struct DiskObjectsOptions {
  ObjectFolder::Options folder;  // `note` is this store's
  std::uint64_t cap_bytes = 0;   // of files
  std::uint64_t index_bytes = 8u << 20;
  std::size_t queue_bytes = 16u << 20;          // of puts that were not written yet
  std::size_t loading_bytes = 16u << 20;        // of reads that were not answered yet
  std::function<void()> wake;                   // poll() has something to do; called on threads of the store
  std::function<void(const std::string&)> log;  // one line; called by poll()
};

class DiskObjects {
 public:
  using Id = std::uint64_t;
  static constexpr std::size_t kMostOfName = 8;
  static constexpr std::size_t kErasuresKnown = 4096;  // while the directory is read

  // Throws StoreUnusable. The directory is read in the background; until that is done, nothing is stored or
  // found.
  explicit DiskObjects(DiskObjectsOptions options);
  ~DiskObjects();  // after everything in the queue was written; a later store trusts what is there then

  struct Found {
    Id id = 0;
    std::uint32_t bytes = 0;
    bool is_sure = false;  // stored by this process, or by one that ended in order since the system started
  };
  // The newest that fits.
  using Fits = std::function<bool(Bytes tag, bool is_sure)>;
  std::optional<Found> find(std::string_view name, const Fits& fits) const;
  // Replaces the one of that name with that tag, also if it cannot be stored.
  void put(std::string_view name, Buffer tag, std::vector<Slice> parts);
  void erase(std::string_view name);
  void erase(std::string_view name, Bytes tag);
  // `done` is called by poll(), with nothing if it cannot be read or was erased meanwhile. False: too much is
  // being read, and `done` is not called.
  using Done = std::function<void(std::optional<Slice>)>;
  bool read(Id id, Done done);
  // Drops all of them and destroys the key; returns the bytes of content dropped.
  std::uint64_t clear();
  ClearedKey cleared_key() const { return cleared_key_; }

  // Takes results from the threads. True: there is more, for a later call.
  bool poll();
  // Waits until everything is done and reported. For tests.
  void settle();
  ObjectCounters counters() const;
  // The queue, what is being read, and the index.
  std::uint64_t memory_bytes() const { return counters_.queued_bytes + loading_bytes_ + index_bytes_; }

 private:
  struct Entry {
    SaltedLabel object;
    bool is_sure = false, is_written = false;
    std::list<Id>::iterator used;
  };
  using Entries = std::unordered_map<Id, Entry>;
  struct FoundEvent {
    std::uint64_t round;
    ObjectFolder::Found found;
  };
  struct Started {
    std::uint64_t round;
    bool usable;
    std::uint64_t stuck;
  };
  struct Written {
    Id id;
    std::uint32_t bytes;
    bool done;
    std::uint64_t stuck;
  };
  struct Removed {
    std::uint64_t stuck;
  };
  struct Read {
    Id id;
    std::uint32_t bytes;
    Done done;
    Result<Slice> content;
  };
  struct Cleared {
    std::uint64_t clear;
    bool key_destroyed;
    std::uint64_t stuck;
  };
  struct Note {
    std::string line;
  };
  using Event = std::variant<FoundEvent, Started, Written, Removed, Read, Cleared, Note>;

  void on(FoundEvent& event);
  void on(Started& event);
  void on(Written& event);
  void on(Removed& event);
  void on(Read& event);
  void on(Cleared& event);
  void on(Note& event);

  void start();
  std::vector<Id> of_name(const ObjectName& name) const;  // the oldest first
  void note_erasure(const ObjectName& name);
  void add(Id id, Entry entry);
  enum class File { remove, gone };
  void drop(Id id, File file);
  bool make_room(std::uint64_t bytes, std::uint64_t index_bytes);

  DiskObjectsOptions options_;
  std::atomic<bool> ending_{false};
  ObjectFolder folder_;  // used by the writer, except read()
  Entries entries_;
  std::set<std::pair<ObjectName, Id>> by_name_;
  std::list<Id> by_use_;         // the latest last
  std::set<ObjectName> erased_;  // while the directory is read
  bool erased_too_many_ = false;
  Id last_id_ = 0;
  std::uint64_t disk_bytes_ = 0, stuck_bytes_ = 0, index_bytes_ = 0, loading_bytes_ = 0,
                puts_without_folder_ = 0;
  enum class State { starting, ready, unusable } state_ = State::starting;
  std::uint64_t rounds_ = 0, clears_ = 0;  // the current ones: results of an earlier one are obsolete
  ClearedKey cleared_key_ = ClearedKey::none;
  ObjectCounters counters_;
  std::uint64_t events_ = 0;
  Mailbox<Event> mailbox_;
  Worker writer_, reader_;  // last: they use the members above
};

}  // namespace longhaul::cache
