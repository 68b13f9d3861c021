// SPDX-License-Identifier: Apache-2.0
// The near half's part that informs the far half about possible losses if this proxy fails: the daemon's
// number (Remembers), and opens without outstanding promises (Settled). The far half's part is far_losses.h.
#pragma once
#include <memory>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/promises/settling.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

// Whether the far half watches the open because it may have, or get, promises.
bool may_be_written_behind(const Open& open);

class NearSettled final : public NearPart {
 public:
  NearSettled(NearSide& side, std::shared_ptr<const LostWrites> lost) : side_(side), lost_(std::move(lost)) {}

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_request(TimePoint, const Message&, const Changes&) override { return Taken::no; }
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override { return settling_.next_timeout(); }

 private:
  void active(const Open& open, TimePoint now);

  NearSide& side_;
  std::shared_ptr<const LostWrites> lost_;
  Settling settling_;
  bool has_said_who_ = false;
};

}  // namespace longhaul::smb::smb2
