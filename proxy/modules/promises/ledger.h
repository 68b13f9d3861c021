// SPDX-License-Identifier: Apache-2.0
// The ledger of writes that are answered before the server has answered them: what is outstanding, how much
// more may be promised, which late errors the client has not seen yet. Pure book-keeping; whether writes of
// an open may be answered early at all is left to the protocol's near half.
//
//   promise() ──> now    the client is answered at once; kept() settles it later
//            └──> held   no room under the bound, or not clear yet whether it may be: poll_answerable() says
//                        when it may be answered early after all, or kept() comes first and brings the real
//                        answer, which was no promise then
//            └──> refused  this open has failed before (or the message is known): forward it like any other
//
// A promise that fails stays with its open until that is closed: settle() gives the same error to every
// answer that a program could take for the success of what it wrote.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "codecs/interval_set.h"
#include "codecs/keyed_hash.h"
#include "proxy/modules/promises/messages.h"

namespace longhaul::promises {

// Every promise is in exactly one of: kept, failed, broken_off, outstanding. Every failed one is reported,
// cut_off (the connection was reset, which is how the client learns of it), or still waits for an answer that
// can carry it.
struct PromiseAudit {
  std::uint64_t made = 0, kept = 0, failed = 0, broken_off = 0, outstanding = 0;
  std::uint64_t reported = 0, cut_off = 0, unreported = 0;
  std::uint64_t delayed = 0;  // writes whose early answer had to wait for room

  bool adds_up() const {
    return made == kept + failed + broken_off + outstanding && failed == reported + cut_off + unreported;
  }
};

class Ledger {
 public:
  using Open = OpenKey;
  using Message = MessageNumber;
  struct Range {
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
  };

  // The bound is what the line drains in two seconds, so that a server that breaks an oplock is answered in
  // time. A write that exceeds it alone waits for the server's answer: the line takes longer than a round trip
  // for it. The least is one write of the older clients; until the rate is known, what a T1 line drains in one
  // second and a half.
  static constexpr std::uint64_t kLeastBoundBytes = 64 << 10, kMostBoundBytes = 64 << 20;
  static constexpr std::uint64_t kBoundOfUnknownLine = 256 << 10;
  void set_line_rate(double bytes_per_second);  // no effect unless it is known
  std::uint64_t bound_bytes() const { return bound_bytes_; }

  enum class Verdict : std::uint8_t { now, held, refused };
  // A WRITE that fulfils every other condition, or for which that will soon be known: `open_question` is held
  // until decide(). Unless refused its server's answer must be passed to kept().
  enum class Conditions : std::uint8_t { fulfilled, open_question };
  Verdict promise(const Open& open, Message message, Range range,
                  Conditions conditions = Conditions::fulfilled);
  // The open question of a held write is answered: `no` leaves it to its real answer.
  enum class Answer : bool { no, yes };
  void decide(Message message, Answer answer);

  // A held write for which there is room now: answer it; it is a promise from here on. In order of arrival.
  std::optional<Message> poll_answerable();

  struct Settled {
    Open open{};
    Range range;
    bool answered = false;  // early; otherwise the client still waits for the server's answer
  };
  // The server's final answer to a promised or held write: a warning is neither a success nor an error. A
  // success with fewer bytes than promised is a failure (SMB1 reports a full disk that way). None: no such
  // message.
  enum class Outcome : std::uint8_t { success, warning, error };
  std::optional<Settled> kept(Message message, Outcome outcome, std::uint32_t written_bytes);

  // From now on no write of this open is answered early (a break, a full disk, the feature switched off):
  // held writes wait for their real answers. Earlier promises stay.
  void stop(const Open& open);
  void resume(const Open& open);  // has no effect on an open that has failed

  // An answer to a WRITE, FLUSH or CLOSE of this open goes to the client now. True: a promise has failed, and
  // the answer must be the protocol's error for lost writes, always: the server's own error would refer to
  // another WRITE, and a program repeats a WRITE that met a full disk or an expired session. Must not be
  // called for interim answers.
  bool reports_loss(const Open& open);

  bool lost(const Open& open) const;        // a promise has failed
  bool unreported(const Open& open) const;  // and no answer has reported it yet
  bool failed(const Open& open) const;      // a WRITE has failed, promised or not: no early answers any more
  std::uint64_t outstanding_bytes() const { return outstanding_bytes_; }
  std::uint64_t outstanding_bytes(const Open& open) const;
  std::size_t waiting(const Open& open) const;  // promised and held writes without the server's answer
  std::size_t waiting() const { return entries_.size(); }
  bool waits_for(Message message) const { return entries_.contains(message); }
  // Messages that wait through this open.
  std::vector<Message> messages(const Open& open) const;

  // Messages that are outstanding through this open.
  std::vector<Interval> outstanding_ranges(const Open& open) const;

  // Opens with outstanding writes, or a loss that is not reported.
  std::vector<Open> owed() const;
  // True while a clean end of the connection would hide a loss: reset it instead.
  bool owes() const { return audit_.outstanding != 0 || audit_.unreported != 0; }

  // The open has ended (its CLOSE was answered, its tree or session ended). False: something was still
  // outstanding; it is counted as cut off, and the connection must be reset.
  [[nodiscard]] bool forget(const Open& open);
  // The connection is reset, which tells the client about everything outstanding.
  void cut_off();

  const PromiseAudit& audit() const { return audit_; }

 private:
  // Small writes cost memory and a server's answer too, so each counts for at least this much.
  static constexpr std::uint32_t kLeastChargeBytes = 1024;
  static std::uint64_t charge(const Range& range);

  struct Entry {
    Open open{};
    Range range;
    bool answered = false;
    enum class Early : std::uint8_t { yes, no, open_question } early = Early::yes;
  };
  struct OpenState {
    std::uint64_t outstanding_bytes = 0;
    std::uint32_t outstanding = 0, held = 0;
    std::uint32_t failed_unreported = 0;
    bool lost = false, failed = false, stopped = false;
    KeyedSet<Message> messages;  // promised or held
  };
  bool room_for(const Range& range) const;
  void answer(Entry& entry, OpenState& open);
  void drop_settled();

  KeyedMap<Message, Entry> entries_;
  std::deque<Message> held_;  // in order of arrival; some may be settled already
  std::unordered_map<Open, OpenState, OpenKeyHash> opens_;
  std::uint64_t outstanding_bytes_ = 0;
  std::uint64_t bound_bytes_ = kBoundOfUnknownLine;
  PromiseAudit audit_;
};

}  // namespace longhaul::promises
