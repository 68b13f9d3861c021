// SPDX-License-Identifier: Apache-2.0
// See ledger.h: to the product's ledger and back.
#include "tests/model/ledger.h"

#include <cassert>
#include <tuple>
#include <unordered_map>

#include "proxy/modules/smb/promises.h"

namespace longhaul::model {
namespace {

using smb::Promises;
using smb::Status;

constexpr std::uint32_t kBlockBytes = 4096;
constexpr unsigned kFailedWrite = 63;  // stands for whichever failed before

const smb::OpenKey kOpen{.session = 1, .tree = 1};

Promises::Range range_of(unsigned write) { return {.offset = write * kBlockBytes, .length = kBlockBytes}; }

Status status_of(Answer answer) {
  switch (answer) {
    case Answer::success:
      return Status::success;
    case Answer::disk_full:
      return Status::disk_full;
    case Answer::lost:
      return Status::lost_writebehind_data;
    case Answer::session_deleted:
      return Status::user_session_deleted;
    case Answer::not_found:
      break;  // answers OPEN alone
  }
  return Status::unsuccessful;
}

Answer answer_of(Status status) {
  for (Answer answer : {Answer::success, Answer::disk_full, Answer::session_deleted})
    if (status_of(answer) == status) return answer;
  return Answer::lost;
}

Promises load(const Ledger& ledger) {
  Promises promises;
  promises.set_line_rate(1e9);
  const auto made = [&](unsigned write) {
    [[maybe_unused]] const auto verdict = promises.promise(kOpen, Promises::Message(write), range_of(write));
    assert(verdict == Promises::Verdict::now);
  };
  for (unsigned write = 0; write < 8; ++write)
    if (ledger.outstanding >> write & 1) made(write);
  if (ledger.lost == 0) return promises;
  made(kFailedWrite);
  promises.kept(Promises::Message(kFailedWrite), Status::disk_full, 0);
  if (ledger.lost == 1) promises.settle(kOpen, Status::success);
  return promises;
}

Ledger store(const Promises& promises) {
  Ledger ledger;
  for (const auto message : promises.messages(kOpen))
    ledger.outstanding = static_cast<std::uint8_t>(ledger.outstanding | 1U << message.number());
  if (promises.lost(kOpen)) ledger.lost = promises.unreported(kOpen) ? 2 : 1;
  assert(promises.audit().adds_up());
  return ledger;
}

enum class Ask : std::uint8_t { promise, kept, settle, owes };
struct Said {
  Ledger ledger;
  std::uint8_t value = 0;
};

Said ask(const Ledger& ledger, Ask what, unsigned number, Answer answer) {
  static std::unordered_map<std::uint64_t, Said> known;
  const std::uint64_t key = ledger.outstanding | std::uint64_t{ledger.lost} << 8 |
                            static_cast<std::uint64_t>(what) << 24 | std::uint64_t{number} << 32 |
                            static_cast<std::uint64_t>(answer) << 40;
  const auto [found, is_new] = known.try_emplace(key);
  if (!is_new) return found->second;
  Promises promises = load(ledger);
  Said& said = found->second;
  switch (what) {
    case Ask::promise:
      said.value = promises.promise(kOpen, Promises::Message(number), range_of(number)) == Promises::Verdict::now;
      break;
    case Ask::kept:
      promises.kept(Promises::Message(number), status_of(answer), answer == Answer::success ? kBlockBytes : 0);
      break;
    case Ask::settle:
      said.value = static_cast<std::uint8_t>(answer_of(promises.settle(kOpen, status_of(answer))));
      break;
    case Ask::owes:
      said.value = promises.owes();
      break;
  }
  said.ledger = store(promises);
  return said;
}

}  // namespace

void Ledger::take(const Ledger& other) {
  const Answer same = cause;
  *this = other;
  cause = same;
}

bool Ledger::promise(unsigned write) {
  const Said said = ask(*this, Ask::promise, write, Answer::success);
  take(said.ledger);
  return said.value != 0;
}

void Ledger::kept(unsigned write, Answer answer) { take(ask(*this, Ask::kept, write, answer).ledger); }

Answer Ledger::settle(Answer answer) {
  const Said said = ask(*this, Ask::settle, 0, answer);
  take(said.ledger);
  return static_cast<Answer>(said.value);
}

bool Ledger::owes() const { return ask(*this, Ask::owes, 0, Answer::success).value != 0; }

}  // namespace longhaul::model
