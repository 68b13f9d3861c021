// SPDX-License-Identifier: Apache-2.0
// The flows of a daemon that promise writes, or that could mislead a client about them, for as long as they
// live: what one flow does to a file affects the others between the same addresses. Part of LostWrites.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "proxy/link/types.h"
#include "proxy/modules/promises/lost_file.h"

namespace longhaul::promises {

enum class Reach : std::uint8_t { itself, below };  // `below`: with everything in it, if it is a folder

// Writes of a file that flows have promised and that are not known to be completed.
struct Unfinished {
  std::uint64_t bytes = 0;
  link::TimePoint moved_at{};  // when the server last answered one of these WRITEs, or the first was promised
};

// The promises of a near half that are not known to be kept.
class LiveLedger {
 public:
  virtual ~LiveLedger() = default;
  virtual bool owes() const = 0;
  // If writes of this file are outstanding, all outstanding writes count as lost, and the flow is reset when
  // its host next runs.
  virtual void give_up(const LostFile& file, Cause cause, Reach reach) = 0;
  // Stops promising if writes of this file are outstanding.
  virtual Unfinished finish(const LostFile& file, Reach reach) = 0;
};

// The names of a connection's open files, under which its promises are recorded.
class OpenNames {
 public:
  virtual ~OpenNames() = default;
  // Files that are `from`, or are below it, are now named as in name_after().
  virtual void moved(const LostFile& from, const LostFile& to) = 0;
};

class LiveFlows {
 public:
  using Ends = modules::Ends;

  // ---- flows that promise

  // A near half; enter() when it begins, leave() when it ends.
  void enter(const Ends& ends, LiveLedger* ledger) { promising_.emplace(any_port(ends), ledger); }
  void leave(const Ends& ends, LiveLedger* ledger);
  bool may_promise(const Ends& ends) const { return promising_.contains(any_port(ends)); }
  bool owe(const Ends& ends) const;
  // To be called before an open that cannot wait for this client's other flows with outstanding writes of the
  // file: those flows are ended, and their outstanding writes are lost.
  void end(const LostFile& file, Cause cause = Cause::link_lost, const LiveLedger* but = nullptr,
           Reach reach = Reach::itself);
  // `call` is called when end() has given up writes: those flows end when their hosts next run. None by
  // default.
  void on_given_up(std::function<void()> call) { on_given_up_ = std::move(call); }
  // To be called before an open that can wait: other flows of this client than `own` promise nothing more for
  // the file.
  Unfinished finish_others(const LostFile& file, const LiveLedger& own, Reach reach = Reach::itself);

  // ---- flows without a guard

  // A flow between these addresses without a guard, for as long as it lives: meanwhile nothing may be
  // promised to its client, which could continue on that flow.
  void enter_unguarded(const Ends& ends) { unguarded_.insert(any_port(ends)); }
  void leave_unguarded(const Ends& ends) { unguarded_.extract(any_port(ends)); }
  bool has_unguarded(const Ends& ends) const { return unguarded_.contains(any_port(ends)); }

  // ---- names

  // The open files of a connection, for as long as it lives.
  void enter_names(const Ends& ends, OpenNames* names) { named_.emplace(any_port(ends), names); }
  void leave_names(const Ends& ends, OpenNames* names);
  void moved(const LostFile& file, const LostFile& to);
  // While a rename of this client is not answered, a file may have either name: a promise made now could be
  // recorded under the wrong one. Lasts as long as the result, which this object must outlive.
  std::shared_ptr<void> begin_rename(const Ends& ends);
  bool is_renaming(const Ends& ends) const { return renaming_.contains(any_port(ends)); }

 private:
  std::multimap<Ends, LiveLedger*> promising_;
  std::multiset<Ends> unguarded_, renaming_;
  std::multimap<Ends, OpenNames*> named_;
  std::function<void()> on_given_up_;
};

}  // namespace longhaul::promises
