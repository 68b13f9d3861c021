// SPDX-License-Identifier: Apache-2.0
// Lost writes as the daemon uses them: texts for its log and views, guards for its flows, and the text that
// it stores. lost_writes.h decides what is lost, and which client is informed.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "proxy/modules/losses.h"
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/state.h"

namespace longhaul::promises {

class LossReports final : public modules::Losses, public modules::State, private LossJournal {
 public:
  // The display name of a file, and a guard for a client that may have lost writes.
  using Name = std::string (*)(const LostWrites::File& file);
  using Guarded = std::unique_ptr<modules::Guard> (*)(const modules::Ends& ends,
                                                      std::shared_ptr<LostWrites> lost);
  // Seconds since 1970 by this host's clock, by which operators find a report.
  using WallSeconds = std::function<std::int64_t()>;
  LossReports(std::shared_ptr<LostWrites> lost, Name name_of, Guarded guard, WallSeconds wall);
  ~LossReports() override;
  LossReports(const LossReports&) = delete;
  LossReports& operator=(const LossReports&) = delete;

  // Losses
  Counts counts() const override;
  std::vector<modules::LostFile> files(const modules::Ends& ends, std::size_t most) const override;
  std::vector<modules::ToldFile> told(const modules::Ends& ends, std::size_t most) const override;
  void set_log(modules::LossLog* log) override { log_ = log; }
  std::unique_ptr<modules::Guard> make_guard(const modules::Ends& ends) override;
  bool told_by_reset(const modules::Ends& ends) override { return lost_->told_by_reset(ends); }
  std::shared_ptr<void> unguarded(const modules::Ends& ends) override;
  std::vector<modules::Ends> guarded() const override { return lost_->all_ends(); }
  void on_guarded(std::function<void()> call) override { lost_->events().on_change(std::move(call)); }
  void on_given_up(std::function<void()> call) override { lost_->live().on_given_up(std::move(call)); }

  // State
  std::string text() const override;
  bool restore(std::string_view text) override;
  void on_change(std::function<void()> call) override { on_change_ = std::move(call); }

  // Reports that are kept for operators, until the daemon ends.
  static constexpr std::size_t kMostTold = 256, kMostToldNameBytes = 256 << 10;

 private:
  // LossJournal
  void lost(const LostWrites::File& file, const LostWrites::Loss& loss) override;
  void reported(const LostWrites::File& file, const LostWrites::Loss& loss, Told how) override;
  void ended(const LostWrites::File& file, const LostWrites::Loss& loss, Ended why) override;
  void evicted(const LostWrites::File& file) override;
  void changed() override;

  modules::LostFile shown(const LostWrites::File& file) const;
  modules::LostFile shown(const LostWrites::File& file, const LostWrites::Loss& loss) const;

  std::shared_ptr<LostWrites> lost_;
  Name name_of_;
  Guarded guard_;
  WallSeconds wall_;
  std::deque<modules::ToldFile> told_;  // the latest is first
  std::size_t told_name_bytes_ = 0;
  modules::LossLog* log_ = nullptr;
  std::function<void()> on_change_;
};

}  // namespace longhaul::promises
