// SPDX-License-Identifier: Apache-2.0
// The flows of a daemon that promise writes or that could mislead a client about them, from their beginning to their end:
// what one flow does to a file concerns the others between the same addresses. Part of LostWrites.
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

enum class Reach : std::uint8_t { itself, below };  // with all that it contains, if it is a folder

// Writes that flows have promised for a file and that are not known to be done.
struct Unfinished {
  std::uint64_t bytes = 0;
  link::TimePoint moved_at{};  // when the server last answered one of their WRITEs, or the first was promised
};

// A near half's promises that are not known to be kept.
class LiveLedger {
 public:
  virtual ~LiveLedger() = default;
  virtual bool owes() const = 0;
  // If writes of this file are outstanding, all outstanding writes count as lost, and the flow is reset when
  // its host runs next.
  virtual void give_up(const LostFile& file, Cause cause, Reach reach) = 0;
  // Stops promising if writes of this file are outstanding.
  virtual Unfinished finish(const LostFile& file, Reach reach) = 0;
};

// The names of a connection's open files, by which its promises are recorded.
class OpenNames {
 public:
  virtual ~OpenNames() = default;
  // Files that are `from`, or lie below it, are now called as name_after() says.
  virtual void moved(const LostFile& from, const LostFile& to) = 0;
};

class LiveFlows {
 public:
  using Ends = modules::Ends;

  // ---- flows that promise

  // A near half, from its beginning to its end.
  void enter(const Ends& ends, LiveLedger* ledger) { promising_.emplace(any_port(ends), ledger); }
  void leave(const Ends& ends, LiveLedger* ledger);
  bool may_promise(const Ends& ends) const { return promising_.contains(any_port(ends)); }
  bool owe(const Ends& ends) const;
  // Before an open that cannot wait for this client's other flows with outstanding writes of the file: those
  // flows are ended, and their outstanding writes are lost.
  void end(const LostFile& file, Cause cause = Cause::link_lost, const LiveLedger* but = nullptr,
           Reach reach = Reach::itself);
  // Called when end() has given up writes: those flows end when their hosts run next. None by default.
  void on_given_up(std::function<void()> call) { on_given_up_ = std::move(call); }
  // Before an open that can wait: other flows of this client than `own` promise nothing more for the file.
  Unfinished finish_others(const LostFile& file, const LiveLedger& own, Reach reach = Reach::itself);

  // ---- flows that nobody reads

  // A flow between these addresses that no guard reads, from its beginning to its end: while there is one,
  // nothing may be promised to its client, which could go on there.
  void enter_unguarded(const Ends& ends) { unguarded_.insert(any_port(ends)); }
  void leave_unguarded(const Ends& ends) { unguarded_.extract(any_port(ends)); }
  bool has_unguarded(const Ends& ends) const { return unguarded_.contains(any_port(ends)); }

  // ---- names

  // What a connection has open, from its beginning to its end.
  void enter_names(const Ends& ends, OpenNames* names) { named_.emplace(any_port(ends), names); }
  void leave_names(const Ends& ends, OpenNames* names);
  void moved(const LostFile& file, const LostFile& to);
  // While a rename of this client's has no answer a file may have either name: what was promised now could be
  // recorded under the wrong one. Holds as long as the result; this object outlives that.
  std::shared_ptr<void> begin_rename(const Ends& ends);
  bool is_renaming(const Ends& ends) const { return renaming_.contains(any_port(ends)); }

 private:
  std::multimap<Ends, LiveLedger*> promising_;
  std::multiset<Ends> unguarded_, renaming_;
  std::multimap<Ends, OpenNames*> named_;
  std::function<void()> on_given_up_;
};

}  // namespace longhaul::promises
