// SPDX-License-Identifier: Apache-2.0
// The far half's part for queries about a share's volume: repeats the client's queries for a while, through
// the file that the client has used, and sends the near half each response that differs (volume_looks.h,
// near_volumes.h).
#pragma once
#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/volume_looks.h"

namespace longhaul::smb::smb2 {

class FarVolumes final : public FarPart {
 public:
  explicit FarVolumes(FarSide& side)
      : side_(side),
        looks_([this](const VolumeLooks::Volume& volume, TimePoint,
                      std::uint64_t number) { return ask(volume, number); },
               [this](const VolumeLooks::Volume& volume, VolumeLooks::Answer answer) {
                 tell(volume, answer == VolumeLooks::Answer::known ? Status::success : Status::pending);
               }) {}

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint, const TwinMessage&, const Slice&) override { return Taken::no; }
  void stream_ended(TimePoint) override { looks_.forget(); }
  void on_timeout(TimePoint now) override { looks_.on_timeout(now); }
  std::optional<TimePoint> next_timeout() const override { return looks_.next_timeout(); }

 private:
  bool ask(const VolumeLooks::Volume& volume, std::uint64_t number);
  void tell(const VolumeLooks::Volume& volume, Status status);

  // Limits for one connection; other queries are sent to the server each time.
  static constexpr std::size_t kMostAsked = 256;
  static constexpr std::uint32_t kMostAskedBytes = 64 << 10;

  FarSide& side_;
  VolumeLooks looks_;
  KeyedMap<MessageId, Slice> asked_;  // unanswered queries of the client
  KeyedSet<MessageId> changing_;      // unanswered requests that may change the space
};

}  // namespace longhaul::smb::smb2
