// SPDX-License-Identifier: Apache-2.0
// Counts lost writes and their reports, and passes them on to the journal. Part of LostWrites, which decides
// what is lost, reported and forgotten.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "proxy/modules/promises/lost_file.h"

namespace longhaul::promises {

// Logs events, and stores losses that are not reported yet. Called on the loop; never waits.
class LossJournal {
 public:
  virtual ~LossJournal() = default;
  virtual void lost(const LostFile& file, const Loss& loss) = 0;
  virtual void reported(const LostFile& file, const Loss& loss, Told how) = 0;
  virtual void ended(const LostFile& file, const Loss& loss, Ended why) = 0;
  virtual void evicted(const LostFile& file) = 0;
  virtual void changed() = 0;  // LostWrites::records()
};

class LossEvents {
 public:
  // None by default. It outlives this object, or is removed before.
  void set_journal(LossJournal* journal) { journal_ = journal; }
  // Called whenever the clients with losses may have changed. None by default.
  void on_change(std::function<void()> call) { on_change_ = std::move(call); }

  struct Counters {
    std::array<std::uint64_t, kCauseNames.size()> lost{};       // files of promises, by cause
    std::array<std::uint64_t, kCauseNames.size()> suspected{};  // not by a half that knows, by cause
    std::array<std::uint64_t, kToldNames.size()> reported{};    // by how
    std::uint64_t evicted = 0;                                  // never reported: too many
  };
  const Counters& counters() const { return counters_; }

  void lost(const LostFile& file, const Loss& loss) {
    auto& counters = loss.is_suspected() ? counters_.suspected : counters_.lost;
    ++counters[static_cast<std::size_t>(loss.cause)];
    if (journal_) journal_->lost(file, loss);
  }
  void reported(const LostFile& file, const Loss& loss, Told how) {
    ++counters_.reported[static_cast<std::size_t>(how)];
    if (journal_) journal_->reported(file, loss, how);
  }
  void ended(const LostFile& file, const Loss& loss, Ended why) {
    if (journal_) journal_->ended(file, loss, why);
  }
  void evicted(const LostFile& file) {
    ++counters_.evicted;
    if (journal_) journal_->evicted(file);
  }
  void changed() {
    if (journal_) journal_->changed();
    restored();
  }
  // The records come from the journal.
  void restored() {
    if (on_change_) on_change_();
  }

 private:
  LossJournal* journal_ = nullptr;
  std::function<void()> on_change_;
  Counters counters_;
};

}  // namespace longhaul::promises
