// SPDX-License-Identifier: Apache-2.0
// The directory on two threads, one that writes and one that reads: requests return at once, and what became
// of them is fetched later. Each thread answers in the order of its requests. Used by one thread.
// segment_folder.h does the work; disk_store.h decides what is requested.
#pragma once
#include <variant>

#include "cache/inventory.h"
#include "cache/segment_folder.h"
#include "cache/worker.h"

namespace longhaul::cache {

class SegmentThreads {
 public:
  // ---- What became of requests. `overhead`: SegmentFolder::overhead_bytes() afterwards.
  struct Found {  // at a start
    std::uint64_t start;
    Record record;
  };
  struct Started {
    std::uint64_t start;
    bool usable;
    std::uint64_t overhead;
  };
  struct Cleared {
    std::uint64_t clear;
    bool key_destroyed;
    std::uint64_t overhead;
  };
  struct Written {
    Slot slot;
    SegmentFolder::Written result;
    Record record;
    std::uint64_t overhead;
  };
  struct Removed {
    std::uint64_t overhead;
  };
  struct Loaded {
    reduction::LoadId load;
    Slot slot;  // none: no request was sent to the disk
    std::uint64_t number;
    Result<Slice> bytes;
  };
  struct Note {  // for the log
    std::string line;
  };
  using Event = std::variant<Found, Started, Cleared, Written, Removed, Loaded, Note>;

  // Throws StoreUnusable. `folder` without `note`, for which there is an event. `wake` is called on these
  // threads when take() has something to fetch.
  SegmentThreads(SegmentFolder::Options folder, std::function<void()> wake);
  ~SegmentThreads();  // after everything that was requested was done

  // Moves up to `most` events to `out`; true if there are more.
  bool take(std::size_t most, std::vector<Event>& out) { return mailbox_.take(most, out); }
  bool busy() const { return writer_.busy() || reader_.busy(); }

  // ---- Of the thread that writes. `start` and `clear` name the request in its events.
  void start(std::uint64_t start);
  void write(Slot slot, Record record, std::vector<Slice> parts);
  void use(std::uint64_t number, std::uint64_t stamp);  // no event
  void remove(std::uint64_t number, std::uint64_t file_bytes);
  void clear(std::uint64_t clear);

  // ---- Of the thread that reads.
  void read(reduction::LoadId load, Slot slot, std::uint64_t number, const SegmentName& name,
            std::uint32_t offset, std::uint32_t size);
  // A load that is impossible, in its turn.
  void refuse(reduction::LoadId load);

 private:
  Mailbox<Event> mailbox_;
  SegmentFolder folder_;    // used by the writer, except read()
  Worker writer_, reader_;  // last: they use the members above
};

}  // namespace longhaul::cache
