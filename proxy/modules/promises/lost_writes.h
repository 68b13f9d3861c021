// SPDX-License-Identifier: Apache-2.0
// Files that have lost promised writes, until the client of those promises has been told: kept for all flows
// of a daemon, whichever half they run and whether they cross the link or not (guard.h). Without I/O: a
// LossJournal logs and stores the events; the protocol decides how a client is told.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codecs/interval_set.h"
#include "proxy/modules/losses.h"

namespace longhaul::promises {

// Why a promise was not kept. One row of kCauseNames for each.
enum class Cause : std::uint8_t {
  refused,        // the server answered the WRITE with an error
  server_gone,    // the server or the far proxy ended the connection
  client_gone,    // the client reset its connection before the WRITE was done
  link_lost,      // the link or the far proxy failed
  flow_cut,       // one of the proxies reset the flow, or this daemon stopped
  near_vanished,  // the near proxy failed: it may have promised writes that never arrived
  interrupted,    // this daemon was killed or its host failed while writes may have been promised (marks.h)
};
inline constexpr std::array<std::string_view, 7> kCauseNames{
    "refused", "server_gone", "client_gone", "link_lost", "flow_cut", "near_vanished", "interrupted"};
// How the client was told.
enum class Told : std::uint8_t {
  late_error,  // in the answer to a later WRITE, FLUSH or CLOSE
  next_open,   // in answer to an open of the file
  reset,       // only CLOSE could have told: its answer is withheld, and the connection is reset
};
inline constexpr std::array<std::string_view, 3> kToldNames{"late_error", "next_open", "reset"};

// Why nothing is left to report of a loss, although the client was not told.
enum class Ended : std::uint8_t {
  replaced,  // the client replaced or deleted the content
  not_lost,  // only suspected by a far half: the near daemon knows better
};
inline constexpr std::array<std::string_view, 2> kEndedNames{"replaced", "not_lost"};

class LossJournal;
class LiveLedger;
class OpenNames;
class Marks;

class LostWrites {
 public:
  // Addresses in IPv6 form. Ports do not count: clients try several (SMB: 445 and 139).
  using Ends = modules::Ends;
  static Ends any_port(Ends ends) {
    ends.server_port = 0;
    return ends;
  }
  struct File {
    Ends ends;
    // In the form in which the protocol compares names, so that each file has one.
    std::u16string share;  // what contains the file at the server
    std::u16string path;   // in the share
    // The path letter by letter. Empty: not known. Where a server tells names apart that compare equal, they
    // are two files: a client is told by either name, and only the very file's loss ends.
    std::u16string spelled;
    bool operator==(const File& other) const {
      return any_port(ends) == any_port(other.ends) && share == other.share && path == other.path;
    }
    // Certainly the same file, or not known to be another.
    bool is_exactly(const File& other) const {
      return *this == other && (spelled.empty() || other.spelled.empty() || spelled == other.spelled);
    }
  };
  struct Loss {
    Cause cause = Cause::flow_cut;
    std::uint32_t status = 0;      // of Cause::refused: the protocol's
    std::vector<Interval> ranges;  // of the file, at most kMostRanges; none: unknown
    std::uint64_t near =
        0;  // not zero: only suspected by a far half; the near daemon's number, see known_to()
    // Nobody who knows has said that anything is lost.
    bool is_suspected() const { return near != 0 || cause == Cause::interrupted; }
  };
  struct Record {
    File file;
    Loss loss;
    bool reader_told = false;
    // The first reset that told it, see kResetsFor. Not stored.
    std::optional<link::TimePoint> reset_at;
    // Hashes of other spellings by which it was told, the latest ones. Not stored: after a restart it is told
    // again.
    struct OtherName {
      std::size_t spelled = 0;
      bool only_read = false;
    };
    std::vector<OtherName> told_by_others;
  };
  static constexpr std::size_t kMostRanges = 16;

  // `number`: unique to this daemon, from its start to its end. Zero: unknown. `owner_of`: the site of a
  // client with that address, a peer or (empty) this site.
  using Client = modules::Address;
  using OwnerOf = std::function<std::string(const Client&)>;
  explicit LostWrites(
      std::uint64_t number = 0, OwnerOf owner_of = [](const Client&) { return std::string(); });
  ~LostWrites();
  LostWrites(const LostWrites&) = delete;
  LostWrites& operator=(const LostWrites&) = delete;
  std::uint64_t number() const { return number_; }
  // What is on disk of files that may yet lose writes.
  Marks& marks() const { return *marks_; }
  // None by default. It outlives this object, or is removed before.
  void set_journal(LossJournal* journal) { journal_ = journal; }
  // By default time stands still.
  using Clock = std::function<link::TimePoint()>;
  void set_clock(Clock clock) { clock_ = std::move(clock); }

  // The purpose of an open. Replaces: it removes the content, so nothing is lost any more once it has
  // succeeded.
  enum class Use : std::uint8_t { attributes, reads, writes, replaces };

  // Cause::refused was counted and logged before, by refused().
  void add(const File& file, Loss loss);
  // The server has refused a promised WRITE. A later answer through the same open can tell the client; not
  // every program stops then, so the next open of the file reports it as well.
  void refused(const File& file, Interval range, std::uint32_t status);
  void told_late(const File& file, Told how = Told::late_error);

  // Before an open: true if it must be answered with the protocol's error for lost writes. An open that may
  // write gets the report once, after which the file is forgotten; before that, one open that only reads the
  // data. What was lost by a name that is spelled otherwise is reported as well, by each spelling, and stays.
  bool take(const File& file, Use use = Use::writes);
  // Whether take() would be true, or, for an open that replaces the content, whether there is anything to
  // forget: for callers that learn only later whether the client was told (telling.h).
  bool has(const File& file, Use use) const;
  bool has_record(const File& file) const;
  // Before an open that cannot wait for this client's other flows with outstanding writes of the file: those
  // flows are ended, and their outstanding writes are lost.
  enum class Reach : std::uint8_t { itself, below };  // with all that it contains, if it is a folder
  void end_live(const File& file, Cause cause = Cause::link_lost, const LiveLedger* but = nullptr,
                Reach reach = Reach::itself);
  // Writes that flows have promised for a file and that are not known to be done.
  struct Unfinished {
    std::uint64_t bytes = 0;
    link::TimePoint
        moved_at{};  // when the server last answered one of their WRITEs, or the first was promised
  };
  // Before an open that can wait: other flows of this client than `own` promise nothing more for the file.
  Unfinished finish_others(const File& file, const LiveLedger& own, Reach reach = Reach::itself);
  // This client replaced or deleted the content.
  void forget(const File& file);
  // The connection is reset next, because no response can report the loss. A program may log in again and
  // continue, so later connections are reset as well for this time, unless a response reports the loss
  // earlier. Then the record is removed. Windows and most libraries retry for a shorter time.
  static constexpr std::chrono::seconds kResetsFor{120};
  void told_by_reset(const File& file);
  // The same of every file between these addresses; false: there is none (any more).
  bool told_by_reset(const Ends& ends);
  // This client renamed it, replacing any file of the new name; what lies below it, if it is a folder, too. Its
  // open files follow, through whichever connection they were opened.
  void moved(const File& file, const File& to);
  // The near daemon of that number is back: it knows which of its own promises were lost, so the far half's
  // suspicion about this file is void.
  void known_to(std::uint64_t near, const File& file);
  // The same about all files between these addresses.
  void known_to(std::uint64_t near, const Ends& ends);
  // Also while a flow between these addresses has outstanding writes that may soon be lost.
  bool any(const Ends& ends) const;
  // A file between these addresses of which the client has not been told.
  bool has_records(const Ends& ends) const;
  // Also while a flow between these addresses could still lose writes: it may promise some, or a file is
  // marked.
  bool may_lose(const Ends& ends) const;
  // All clients for which any() is true.
  std::vector<Ends> all_ends() const;
  // Called whenever that may have changed. None by default.
  void on_change(std::function<void()> call) { on_change_ = std::move(call); }

  // Called when end_live() has given up writes: those flows end when their hosts run next. None by default.
  void on_given_up(std::function<void()> call) { on_given_up_ = std::move(call); }

  // A near half that promises, from its beginning to its end.
  void enter(const Ends& ends, LiveLedger* ledger) { live_.emplace(any_port(ends), ledger); }
  void leave(const Ends& ends, LiveLedger* ledger);

  // A flow between these addresses that no guard reads, from its beginning to its end: while there is one,
  // nothing may be promised to its client, which could go on there.
  void enter_unguarded(const Ends& ends) { unguarded_.insert(any_port(ends)); }
  void leave_unguarded(const Ends& ends) { unguarded_.extract(any_port(ends)); }
  bool has_unguarded(const Ends& ends) const { return unguarded_.contains(any_port(ends)); }

  // ---- names

  // What a connection has open, from its beginning to its end.
  void enter_names(const Ends& ends, OpenNames* names) { named_.emplace(any_port(ends), names); }
  void leave_names(const Ends& ends, OpenNames* names);
  // While a rename of this client's has no answer a file may have either name: what was promised now could be
  // recorded under the wrong one. Holds as long as the result; this object outlives that.
  std::shared_ptr<void> begin_rename(const Ends& ends);
  bool is_renaming(const Ends& ends) const { return renaming_.contains(any_port(ends)); }

  // State that is stored over a restart. add() and take() are reported to the journal, restore() is not.
  std::vector<Record> records() const;
  void restore(std::vector<Record> records);

  struct Counters {
    std::array<std::uint64_t, kCauseNames.size()> lost{};       // files of promises, by cause
    std::array<std::uint64_t, kCauseNames.size()> suspected{};  // not by a half that knows, by cause
    std::array<std::uint64_t, kToldNames.size()> reported{};    // by how
    std::uint64_t evicted = 0;                                  // never reported: too many
  };
  const Counters& counters() const { return counters_; }
  std::size_t waiting() const { return waiting_; }  // files whose client was not told yet
  std::size_t name_bytes() const { return name_bytes_; }

  // Limits in total. The owner with the most of an exceeded one loses the oldest file of its client with the
  // most: records caused by one peer never evict those of others.
  static constexpr std::size_t kMost = modules::kMostLostFiles, kMostNameBytes = 1 << 20;

 private:
  struct Owner {
    std::size_t files = 0, name_bytes = 0;
  };
  struct OfClient {
    std::map<std::string, Owner>::iterator owner;
    std::deque<Record> records;  // the oldest first
  };
  using Clients = std::map<Client, OfClient>;
  static auto find_exact(auto& of, const File& file) {
    return std::ranges::find_if(of, [&](const Record& each) { return each.file.is_exactly(file); });
  }
  bool tells(const Record& record, const File& file, Use use) const;
  bool is_over(const Record& record) const {
    return record.reset_at && clock_() - *record.reset_at >= kResetsFor;
  }
  void drop_over(const Client& client);
  void remove_where(const Client& client, std::optional<Ended> why,
                    const std::function<bool(const Record&)>& is_void);
  bool tell(const File& file, Use use);
  void insert(Record record);
  void remove(Clients::iterator of, std::deque<Record>::iterator record);
  void make_room();
  void changed();

  std::uint64_t number_;
  OwnerOf owner_of_;
  std::unique_ptr<Marks> marks_;
  std::function<void()> on_given_up_;
  LossJournal* journal_ = nullptr;
  Clock clock_ = [] { return link::TimePoint{}; };
  std::function<void()> on_change_;
  std::multimap<Ends, LiveLedger*> live_;
  std::multiset<Ends> unguarded_, renaming_;
  std::multimap<Ends, OpenNames*> named_;
  std::map<std::string, Owner> owners_;
  Clients clients_;
  std::size_t waiting_ = 0, name_bytes_ = 0;
  Counters counters_;
};

// A near half's promises that are not known to be kept.
class LiveLedger {
 public:
  virtual ~LiveLedger() = default;
  virtual bool owes() const = 0;
  // If writes of this file are outstanding, all outstanding writes count as lost, and the flow is reset when
  // its host runs next.
  virtual void give_up(const LostWrites::File& file, Cause cause, LostWrites::Reach reach) = 0;
  // Stops promising if writes of this file are outstanding.
  virtual LostWrites::Unfinished finish(const LostWrites::File& file, LostWrites::Reach reach) = 0;
};

// The names of a connection's open files, by which its promises are recorded.
class OpenNames {
 public:
  virtual ~OpenNames() = default;
  // Files that are `from`, or lie below it, are now called as name_after() says.
  virtual void moved(const LostWrites::File& from, const LostWrites::File& to) = 0;
};

// A flow that is not read any more, or not by anyone who could tell its client: LostWrites::enter_unguarded(),
// until it ends.
class Unguarded {
 public:
  Unguarded(std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
      : lost_(std::move(lost)), ends_(ends) {}
  ~Unguarded() {
    if (has_begun_) lost_->leave_unguarded(ends_);
  }
  Unguarded(const Unguarded&) = delete;
  Unguarded& operator=(const Unguarded&) = delete;

  void begin() {
    if (!std::exchange(has_begun_, true)) lost_->enter_unguarded(ends_);
  }

 private:
  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  bool has_begun_ = false;
};

// Logs events, and stores losses that are not reported yet. Called on the loop; never waits.
class LossJournal {
 public:
  virtual ~LossJournal() = default;
  virtual void lost(const LostWrites::File& file, const LostWrites::Loss& loss) = 0;
  virtual void reported(const LostWrites::File& file, const LostWrites::Loss& loss, Told how) = 0;
  virtual void ended(const LostWrites::File& file, const LostWrites::Loss& loss, Ended why) = 0;
  virtual void evicted(const LostWrites::File& file) = 0;
  virtual void changed(const LostWrites& lost) = 0;  // records() has changed
};

// The name of `file` after `from`, which it is or which contains it, was renamed; none: it stays.
std::optional<LostWrites::File> name_after(const LostWrites::File& file, const LostWrites::File& from,
                                           const LostWrites::File& to);
std::size_t bytes_of_name(const LostWrites::File& file);

}  // namespace longhaul::promises
