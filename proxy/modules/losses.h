// SPDX-License-Identifier: Apache-2.0
// Promises that a module could not keep: the affected files, the reports to the operator, and the guards that
// notify the client. Modules without promises do not implement this.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codecs/interval_set.h"
#include "proxy/modules/guard.h"
#include "proxy/modules/module.h"

namespace longhaul::modules {

// The number of lost files that a module remembers.
inline constexpr std::size_t kMostLostFiles = 1024;

struct LostFile {
  std::string name;  // for display
  Ends ends;
  std::string_view cause;
  std::vector<Interval> ranges;  // empty if unknown
};
// A report to the client about such a file.
struct ToldFile {
  LostFile file;
  std::string_view how;
  std::chrono::system_clock::time_point at;
};

// For the operator's log. Called on the event loop.
class LossLog {
 public:
  virtual ~LossLog() = default;
  struct Lost {
    LostFile file;
    std::string status;  // of the server's response
    bool is_certain;
  };
  virtual void lost(const Lost& lost) = 0;
  virtual void reported(const ToldFile& told) = 0;
  virtual void ended(const LostFile& file, std::string_view why) = 0;  // nothing is left to report
  virtual void forgotten(const LostFile& file) = 0;                    // never reported: too many
};

class Losses {
 public:
  using Count = std::pair<std::string_view, std::uint64_t>;
  struct Counts {
    std::vector<Count> lost;       // files, by cause
    std::vector<Count> suspected;  // the same, suspected by a side that cannot be certain
    std::vector<Count> reported;   // by the kind of notification
    std::uint64_t forgotten = 0;
    std::uint64_t waiting = 0;  // files whose client was not yet notified
  };

  virtual ~Losses() = default;
  virtual Counts counts() const = 0;
  // Files of this client at this server, at most `most`.
  virtual std::vector<LostFile> files(const Ends& ends, std::size_t most) const = 0;
  // The last reports to this client about files at this server, the latest first.
  virtual std::vector<ToldFile> told(const Ends& ends, std::size_t most) const = 0;
  // No log by default. The log outlives this object, or is replaced by null.
  virtual void set_log(LossLog* log) = 0;

  // A guard for a flow outside the link; null if there is nothing to report to its client, and its other
  // flows cannot cause a report either.
  virtual std::unique_ptr<Guard> make_guard(const Ends& ends) = 0;
  // For a flow that no guard can read: returns true if its client must be reset now, which notifies it about
  // all its files, and false if there is nothing to report.
  virtual bool told_by_reset(const Ends& ends) = 0;
  // A token to hold while neither a guard nor a half of the module reads a flow between these two. A guard
  // cannot start to read it later, so nothing is promised to the client meanwhile.
  virtual std::shared_ptr<void> unguarded(const Ends& ends) = 0;
  // Clients for which make_guard() has something to report, and a callback for changes of this set.
  virtual std::vector<Ends> guarded() const = 0;
  virtual void on_guarded(std::function<void()> call) = 0;
  // Sets a callback for when a guard has ended promises of near halves, which must then run.
  virtual void on_given_up(std::function<void()> call) = 0;
};

}  // namespace longhaul::modules
