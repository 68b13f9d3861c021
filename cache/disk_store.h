// SPDX-License-Identifier: Apache-2.0
// Segments on a disk: decides which are kept and evicted, and informs listeners. The store is used on its
// owner's thread, never blocks it and has no clock: disk input and output happens on segment_threads.h's.
#pragma once
#include "cache/disk_limit.h"
#include "cache/inventory.h"
#include "cache/link_hooks.h"
#include "cache/listeners.h"
#include "cache/queue_shares.h"
#include "cache/segment_threads.h"
#include "cache/store_counters.h"

namespace longhaul::cache {

struct DiskStoreOptions {
  std::string directory;
  std::string key_file;                         // empty: `key` in the directory (key_file.h)
  std::string credential;                       // a file that is also needed to decrypt; empty: none
  std::uint64_t cap_bytes = 0;                  // at least kMinCapBytes
  std::size_t queue_bytes = 64u << 20;          // of puts that were not written yet
  std::size_t loading_bytes = 64u << 20;        // of loads that were not answered yet
  std::function<void()> wake;                   // poll() has something to do; called on threads of the store
  std::function<void(const std::string&)> log;  // one line; called by poll()
  Files* files = &system_files();
  CatalogueOpener open_catalogue = open_rocksdb_catalogue;
};

class DiskStore final : public reduction::SegmentStore {
 public:
  // Throws StoreUnusable. The directory is read in the background; until that is done, nothing is stored.
  explicit DiskStore(DiskStoreOptions options);
  ~DiskStore() override = default;  // after everything in the queue was written

  void attach(reduction::SegmentListener& listener) override;
  void detach(reduction::SegmentListener& listener) override;
  Put put(const SegmentName& name, std::vector<Slice> parts, std::vector<Hook> hooks) override;
  void drop(const SegmentName& name) override;
  // Drops all of them, including those still being written, and destroys the key; returns the bytes of
  // content dropped.
  std::uint64_t clear();
  ClearedKey cleared_key() const { return cleared_key_; }
  std::vector<SegmentName> list(std::span<const reduction::SiteId> sites) const override;
  std::vector<SegmentName> list() const;  // of all links
  void find(std::span<const std::uint64_t> fingerprints, std::span<const reduction::SitePair> links,
            std::vector<reduction::HookHit>& hits) override;
  reduction::LoadId load(const SegmentName& name, std::uint32_t offset, std::uint32_t size,
                         reduction::SegmentListener& listener) override;

  // Takes results from the threads and notifies the listeners. True: there is more, for a later call.
  bool poll();
  // Waits until everything is done and reported. For tests, and tools without other work.
  void settle();
  StoreCounters counters() const;

 private:
  using Found = SegmentThreads::Found;
  using Started = SegmentThreads::Started;
  using Cleared = SegmentThreads::Cleared;
  using Written = SegmentThreads::Written;
  using Removed = SegmentThreads::Removed;
  using Loaded = SegmentThreads::Loaded;
  using Note = SegmentThreads::Note;
  struct Listed {  // found at a start, not reported yet
    Slot slot;
    std::uint64_t number, stamp;
  };

  void on(Found& found);
  void on(Started& started);
  void on(Cleared& cleared);
  void on(Written& written);
  void on(Removed& removed);
  void on(Loaded& loaded);
  void on(Note& note);

  void start();
  void become_ready();
  void insert_hooks(Slot slot, const std::vector<Hook>& hooks);
  // Drops other segments until `bytes` more fit; false if that is impossible.
  bool make_room(std::uint64_t bytes);
  enum class File { remove, gone };
  void drop_slot(Slot slot, File file);
  void forget_all();

  DiskStoreOptions options_;
  DiskLimit limit_;
  Inventory inventory_;
  LinkHooks hooks_;
  Listeners listeners_;
  QueueShares queue_;  // puts that were not written yet
  std::vector<Listed> found_;
  std::uint64_t last_number_ = 0;
  std::uint64_t last_stamp_ = 0;
  std::uint64_t puts_without_folder_ = 0;
  enum class State { starting, ready, unusable } state_ = State::starting;
  std::uint64_t starts_ = 0, clears_ = 0;  // current round: results of an earlier one are obsolete
  ClearedKey cleared_key_ = ClearedKey::none;
  StoreCounters counters_;
  std::vector<SegmentThreads::Event> taken_;
  std::uint64_t events_ = 0;  // handled so far
  SegmentThreads threads_;
};

}  // namespace longhaul::cache
