// SPDX-License-Identifier: Apache-2.0
// Counts the work that this thread does for peers (without measuring time), so that a loop can limit the
// share of one peer in a turn.
#pragma once
#include <cstdint>
#include <limits>

namespace longhaul {

// One unit is about a nanosecond of a current processor: a byte decompressed or hashed, a hundredth of a
// stream lookup.
inline thread_local std::uint64_t work_done = 0;
inline void count_work(std::uint64_t units) { work_done += units; }

// What one session may do in one turn of the loop. Only work inside its scopes counts.
class WorkBudget {
 public:
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  explicit WorkBudget(std::uint64_t per_turn = kUnlimited) : per_turn_(per_turn) {}

  void begin_turn() { spent_ = 0; }
  // Exceeded by at most one step: a block, a message, a stream that is opened.
  bool used_up() const { return spent_ + (inside_ ? work_done - entered_ : 0) >= per_turn_; }

  class Scope {
   public:
    explicit Scope(WorkBudget& budget) : budget_(budget) {
      budget_.inside_ = true;
      budget_.entered_ = work_done;
    }
    ~Scope() {
      budget_.inside_ = false;
      budget_.spent_ += work_done - budget_.entered_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WorkBudget& budget_;
  };

 private:
  std::uint64_t per_turn_, spent_ = 0, entered_ = 0;
  bool inside_ = false;
};

}  // namespace longhaul
