// SPDX-License-Identifier: Apache-2.0
// Promises that a module could not keep: which files they concern, what the operator is told of them, and the
// guards that tell the client. A module that promises nothing has none.
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

// How many a module remembers.
inline constexpr std::size_t kMostLostFiles = 1024;

struct LostFile {
  std::string name;  // for people
  Ends ends;
  std::string_view cause;
  std::vector<Interval> ranges;  // none: not known
};
// A report to the client of such a file.
struct ToldFile {
  LostFile file;
  std::string_view how;
  std::chrono::system_clock::time_point at;
};

// For the operator's log. Called on the loop.
class LossLog {
 public:
  virtual ~LossLog() = default;
  struct Lost {
    LostFile file;
    std::string status;  // of the server's answer
    bool is_certain;
  };
  virtual void lost(const Lost& lost) = 0;
  virtual void reported(const ToldFile& told) = 0;
  virtual void forgotten(const LostFile& file) = 0;  // never reported: too many
};

class Losses {
 public:
  using Count = std::pair<std::string_view, std::uint64_t>;
  struct Counts {
    std::vector<Count> lost;       // files, by cause
    std::vector<Count> suspected;  // the same, by a side that cannot know
    std::vector<Count> reported;   // by how the client was told
    std::uint64_t forgotten = 0;
    std::uint64_t waiting = 0;  // files whose client has not been told
  };

  virtual ~Losses() = default;
  virtual Counts counts() const = 0;
  // Files of this client at this server, at most so many.
  virtual std::vector<LostFile> files(const Ends& ends, std::size_t most) const = 0;
  // The last reports to this client about files at this server, the latest first.
  virtual std::vector<ToldFile> told(const Ends& ends, std::size_t most) const = 0;
  // None by default. The log outlives this object, or is taken away.
  virtual void set_log(LossLog* log) = 0;

  // For a flow outside the link; null: there is nothing to report to its client, nor will there be because of
  // what it does elsewhere now.
  virtual std::unique_ptr<Guard> make_guard(const Ends& ends) = 0;
  // For one that no guard can read either: its client is reset now, which has to tell it about all its files.
  virtual void told_by_reset(const Ends& ends) = 0;
  // Held while neither a guard nor a half of the module reads a flow between these: it is too late for one then, so
  // nothing is promised to its client.
  virtual std::shared_ptr<void> unguarded(const Ends& ends) = 0;
  // Clients for which make_guard() has something to report, and a callback for changes of this set.
  virtual std::vector<Ends> guarded() const = 0;
  virtual void on_guarded(std::function<void()> call) = 0;
  // What is to be called when a guard has ended promises of near halves, which are to run for that.
  virtual void on_given_up(std::function<void()> call) = 0;
};

}  // namespace longhaul::modules
