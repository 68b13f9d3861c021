// SPDX-License-Identifier: Apache-2.0
// The ledger of writes that are answered before the server has answered them: which are outstanding, how much
// more may be promised, and which late errors were not reported to the client yet. Pure book-keeping; the
// protocol's near half decides whether writes of an open may be answered early at all.
//
//   promise() ──> now    the client is answered at once; kept() settles it later
//            └──> held   no room under the bound, or not decided yet: poll_answerable() returns it when it may
//                        be answered early after all, or kept() comes first with the real response, and then
//                        there was no promise
//            └──> refused  this open has failed before (or the message is known): forward it like any other
//
// A failed promise stays with its open until that is closed: reports_loss() replaces every response that a
// program could take for the success of its writes by the same error.
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
// cut_off (the connection was reset, which informs the client), or still waits for a response that can report
// it.
struct PromiseAudit {
  std::uint64_t made = 0, kept = 0, failed = 0, broken_off = 0, outstanding = 0;
  std::uint64_t reported = 0, cut_off = 0, unreported = 0;
  std::uint64_t delayed = 0;  // writes whose early response had to wait for room

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

  // The bound is what the line drains in two seconds, so that an oplock break of the server is answered in
  // time. A write that alone exceeds it waits for the server's response, because the line takes longer than a
  // round trip for it. The minimum is one write of older clients; until the rate is known, what a T1 line
  // drains in 1.5 s.
  static constexpr std::uint64_t kLeastBoundBytes = 64 << 10, kMostBoundBytes = 64 << 20;
  static constexpr std::uint64_t kBoundOfUnknownLine = 256 << 10;
  void set_line_rate(double bytes_per_second);  // no effect unless it is known
  std::uint64_t bound_bytes() const { return bound_bytes_; }

  enum class Verdict : std::uint8_t { now, held, refused };
  // For a WRITE that meets every other condition, or for which this will soon be known: `open_question` is
  // held until decide(). Unless refused, the server's response must be passed to kept().
  enum class Conditions : std::uint8_t { fulfilled, open_question };
  Verdict promise(const Open& open, Message message, Range range,
                  Conditions conditions = Conditions::fulfilled);
  // Decides the open question of a held write; `no`: it waits for its real response.
  enum class Answer : bool { no, yes };
  void decide(Message message, Answer answer);

  // A held write for which there is room now: the caller answers it, and it becomes a promise. In order of
  // arrival.
  std::optional<Message> poll_answerable();

  struct Settled {
    Open open{};
    Range range;
    bool answered = false;  // early; otherwise the client still waits for the server's response
  };
  // The server's final response to a promised or held write: a warning is neither a success nor an error. A
  // success with fewer bytes than promised is a failure (SMB1 reports a full disk that way). Returns nullopt
  // if there is no such message.
  enum class Outcome : std::uint8_t { success, warning, error };
  std::optional<Settled> kept(Message message, Outcome outcome, std::uint32_t written_bytes);

  // From now on no write of this open is answered early (an oplock break, a full disk, the feature switched
  // off): held writes wait for their real responses. Earlier promises stay.
  void stop(const Open& open);
  void resume(const Open& open);  // has no effect on an open that has failed

  // A response to a WRITE, FLUSH or CLOSE of this open is sent to the client now. Returns true if a promise
  // has failed; then the response must be the protocol's error for lost writes, always: the server's own
  // error would refer to another WRITE, and a program repeats a WRITE that met a full disk or an expired
  // session. Must not be called for interim responses.
  bool reports_loss(const Open& open);

  bool lost(const Open& open) const;        // a promise has failed
  bool unreported(const Open& open) const;  // and no response has reported it yet
  bool failed(const Open& open) const;      // a WRITE has failed, promised or not: no early responses
  std::uint64_t outstanding_bytes() const { return outstanding_bytes_; }
  std::uint64_t outstanding_bytes(const Open& open) const;
  std::size_t waiting(const Open& open) const;  // promised and held writes without the server's response
  std::size_t waiting() const { return entries_.size(); }
  bool waits_for(Message message) const { return entries_.contains(message); }
  // The messages of promised and held writes of this open.
  std::vector<Message> messages(const Open& open) const;

  // The ranges of outstanding writes of this open.
  std::vector<Interval> outstanding_ranges(const Open& open) const;

  // Opens with outstanding writes, or an unreported loss.
  std::vector<Open> owed() const;
  // Whether a clean end of the connection would hide a loss: reset it instead.
  bool owes() const { return audit_.outstanding != 0 || audit_.unreported != 0; }

  // The open has ended (its CLOSE was answered, its tree or session ended). Returns false if writes were
  // still outstanding; they are counted as cut off, and the connection must be reset.
  [[nodiscard]] bool forget(const Open& open);
  // The connection is reset, which informs the client about everything outstanding.
  void cut_off();

  const PromiseAudit& audit() const { return audit_; }

 private:
  // Small writes cost memory and a response of the server too, so each counts for at least this much.
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
  std::deque<Message> held_;  // in order of arrival; may include settled ones
  std::unordered_map<Open, OpenState, OpenKeyHash> opens_;
  std::uint64_t outstanding_bytes_ = 0;
  std::uint64_t bound_bytes_ = kBoundOfUnknownLine;
  PromiseAudit audit_;
};

}  // namespace longhaul::promises
