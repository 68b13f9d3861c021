// SPDX-License-Identifier: Apache-2.0
// The far half's part for queries about a share's volume: what the client asked is asked again ten times a
// second for a while, and the near half is told of each other answer (near_volumes.h).
//
// A server reports no changes of free space. So these looks take the place of a notification, which is no
// earlier: changes are reported at most every 100 ms (far_watch.h), too.
#pragma once
#include <list>
#include <string>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarVolumes final : public FarPart {
 public:
  explicit FarVolumes(FarSide& side) : side_(side) {}

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint, const TwinMessage&, const Slice&) override { return Taken::no; }
  void stream_ended(TimePoint) override { forget(); }
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;

 private:
  struct Watched {
    std::uint64_t number = 0;  // never used again: answers to earlier looks count for nothing
    OpenKey open;              // through which it is asked
    SessionId session = 0;
    TreeId tree = 0;
    Slice question;
    Slice told;  // the near half's answer
    TimePoint until{}, due{};
    bool is_asked = false;
  };
  using Volumes = std::list<Watched>;

  void begin(TimePoint now, const Open& open, const Slice& question, const Slice& response);
  bool look(TimePoint now, Watched& volume);
  void answered(TimePoint now, std::uint64_t number, const Element& answer);
  void tell(const Watched& volume, Status status);
  void forget();

  // Of one connection; other queries go to the server each time.
  static constexpr std::size_t kMostVolumes = 4, kMostAsked = 256, kMostAnswerBytes = 4096;
  static constexpr std::uint32_t kMostAskedBytes = 64 << 10;

  FarSide& side_;
  Volumes volumes_;
  KeyedMap<MessageId, Slice> asked_;  // the client's, without an answer
  KeyedSet<MessageId> changing_;      // that may change the space, without an answer
  std::uint64_t last_ = 0;
};

}  // namespace longhaul::smb::smb2
