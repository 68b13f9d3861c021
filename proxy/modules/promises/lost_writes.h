// SPDX-License-Identifier: Apache-2.0
// Files that have lost promised writes, until the client of those promises has been told: kept for all flows
// of a daemon, whichever half they run and whether they cross the link or not (guard.h). Without I/O: a
// LossJournal (loss_events.h) logs and stores the events; the protocol decides how a client is told. The
// records are in lost_records.h, the flows that may lose writes in live_flows.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "proxy/modules/promises/live_flows.h"
#include "proxy/modules/promises/loss_events.h"
#include "proxy/modules/promises/lost_file.h"
#include "proxy/modules/promises/lost_records.h"

namespace longhaul::promises {

class Marks;

class LostWrites {
 public:
  using Ends = modules::Ends;
  using File = LostFile;
  using Loss = promises::Loss;
  using Record = LostRecord;
  using Use = promises::Use;
  using Reach = promises::Reach;
  using Unfinished = promises::Unfinished;
  using Counters = LossEvents::Counters;
  using Client = LostRecords::Client;
  using OwnerOf = LostRecords::OwnerOf;

  // `number`: unique to this run of the daemon. Zero: unknown. `owner_of`: the site of a client with that
  // address: a peer, or empty for this site.
  explicit LostWrites(
      std::uint64_t number = 0, OwnerOf owner_of = [](const Client&) { return std::string(); });
  ~LostWrites();
  LostWrites(const LostWrites&) = delete;
  LostWrites& operator=(const LostWrites&) = delete;
  std::uint64_t number() const { return number_; }
  // The marks on disk of files that may still lose writes.
  Marks& marks() const { return *marks_; }
  // The flows that may lose writes.
  LiveFlows& live() { return live_; }
  const LiveFlows& live() const { return live_; }
  // What is counted and journalled.
  LossEvents& events() { return events_; }
  // By default time stands still.
  using Clock = std::function<link::TimePoint()>;
  void set_clock(Clock clock) { clock_ = std::move(clock); }

  // Cause::refused was counted and logged before, by refused().
  void add(const File& file, Loss loss);
  // The server has refused a promised WRITE. A later response for the same open can inform the client;
  // because not every program stops then, the next open of the file reports it as well.
  void refused(const File& file, Interval range, std::uint32_t status);
  void told_late(const File& file, Told how = Told::late_error);

  // To be called before an open. Returns true if the open must be answered with the protocol's error for lost
  // writes. An open that may write reports the loss once, after which the file is forgotten; before that, one
  // open that only reads the data reports it. A loss under another spelling of the name is reported as well,
  // once for each spelling, and stays.
  bool take(const File& file, Use use = Use::writes);
  // Whether take() would return true, or, for an open that replaces the content, whether there is anything to
  // forget: for callers that learn only later whether the client was informed (telling.h).
  bool has(const File& file, Use use) const;
  bool has_record(const File& file) const;
  // The client replaced or deleted the content.
  void forget(const File& file);
  // The connection is reset next, because no response can report the loss. A program may log in again and
  // continue, so later connections are reset as well for LostRecord::kResetsFor, unless a response reports
  // the loss earlier. Then the record is removed. Windows and most libraries retry for a shorter time.
  void told_by_reset(const File& file);
  // The same for every file between these addresses; returns false if there is none (any more).
  bool told_by_reset(const Ends& ends);
  // The client renamed the file, replacing any file of the new name; if it is a folder, with everything below
  // it. Its open files follow, on whichever connection they were opened.
  void moved(const File& file, const File& to);
  // The near daemon with that number is back: it knows which of its own promises were lost, so the far half's
  // suspicion about this file is void.
  void known_to(std::uint64_t near, const File& file);
  // The same for all files between these addresses.
  void known_to(std::uint64_t near, const Ends& ends);
  // True also while a flow between these addresses has outstanding writes that may soon be lost.
  bool any(const Ends& ends) const;
  // Whether a client has not been informed about some file between these addresses.
  bool has_records(const Ends& ends) const;
  // True also while a flow between these addresses could still lose writes: it may promise some, or a file is
  // marked.
  bool may_lose(const Ends& ends) const;
  // All clients for which any() is true.
  std::vector<Ends> all_ends() const;

  // State that is stored across restarts. add() and take() are reported to the journal, restore() is not.
  std::vector<Record> records() const { return records_.all(); }
  void restore(std::vector<Record> records);

  std::size_t waiting() const { return records_.size(); }  // files whose client was not informed yet
  std::size_t name_bytes() const { return records_.name_bytes(); }

 private:
  bool is_over(const Record& record) const { return record.is_over(clock_()); }
  void drop_over(const Client& client);
  void remove_where(const Client& client, std::optional<Ended> why, const LostRecords::Test& is_void);
  std::optional<Record> remove_first(const Client& client, const LostRecords::Test& is_it);
  bool tell(const File& file, Use use);
  void insert(Record record);
  void make_room();

  std::uint64_t number_;
  std::unique_ptr<Marks> marks_;
  Clock clock_ = [] { return link::TimePoint{}; };
  LossEvents events_;
  LiveFlows live_;
  LostRecords records_;
};

// Registers a flow that has no guard, or none that could inform its client, with LiveFlows::enter_unguarded()
// until it ends.
class Unguarded {
 public:
  Unguarded(std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
      : lost_(std::move(lost)), ends_(ends) {}
  ~Unguarded() {
    if (has_begun_) lost_->live().leave_unguarded(ends_);
  }
  Unguarded(const Unguarded&) = delete;
  Unguarded& operator=(const Unguarded&) = delete;

  void begin() {
    if (!std::exchange(has_begun_, true)) lost_->live().enter_unguarded(ends_);
  }

 private:
  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  bool has_begun_ = false;
};

}  // namespace longhaul::promises
