// SPDX-License-Identifier: Apache-2.0
// The near half's ledger as part of a state: a few bits, and what the product's own ledger
// (promises/ledger.h) does with them. Each step builds that ledger from the bits, asks it, and reads the bits
// back; results are kept, since they depend on the bits alone.
#pragma once
#include <cstdint>

namespace longhaul::model {

enum class Answer : std::uint8_t { success, disk_full, lost, session_deleted, not_found };

struct Ledger {
  std::uint8_t outstanding = 0;    // promised writes, a bit for each
  std::uint8_t lost = 0;           // a promise of this open has failed: 1, and the client was not told yet: 2
  Answer cause = Answer::success;  // of the first; kept only by a design whose late errors name it
  bool operator==(const Ledger&) const = default;

  bool promise(unsigned write);              // true: answer the client now
  void kept(unsigned write, Answer answer);  // the server's answer
  Answer settle(Answer answer);              // what the client is to be answered
  bool owes() const;

 private:
  void take(const Ledger& other);  // all but the cause
};

}  // namespace longhaul::model
