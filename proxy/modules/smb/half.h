// SPDX-License-Identifier: Apache-2.0
// The interface of one dialect's half to the SMB module, and the time limits of both dialects. The module
// splits frames, chooses the dialect and collects attached bytes (module.h).
#pragma once
#include <chrono>

#include "proxy/modules/smb/features.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/twin_messages.h"
#include "proxy/modules/twin/half.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::smb {

using link::TimePoint;
using twin::Side;

using Outputs = twin::Outputs<TwinMessage>;

class Half : public twin::Half<Frame, TwinMessage, Surroundings> {
 public:
  // Whether the next frame from that side may have no header, as in raw transfers of SMB1.
  virtual Bare bare_from_lan() const { return Bare::unexpected; }
  virtual Bare bare_from_stream() const { return Bare::unexpected; }

  // Signatures and encryption are handled outside this half (seal/): the requirements of NEGOTIATE, a session
  // or a share do not affect it.
  virtual void seals() {}
  // The key of a session is not known after all: its messages will arrive signed or encrypted.
  virtual void cannot_open(modules::Reason) {}
};

// With smb.metadata_relaxed, changes that bypass the server are not detected: older data is fetched again.
inline constexpr modules::Duration kRelaxedDataLife = std::chrono::seconds(10);
// With smb.metadata_relaxed, responses may be older than the last contact.
inline bool is_unheard(TimePoint now, const link::Contact& contact,
                       const Surroundings& surroundings) {
  return !surroundings.features.metadata_relaxed &&
         twin::is_unheard(now, contact, surroundings.round_trip);
}

// How long a server that breaks an oplock of ours may wait for the near half's confirmation that no more
// writes are promised under it. Servers wait 30 (smbd) to 35 seconds (Windows) and then grant the oplock to
// others: a later promised WRITE would overwrite new data with old. So the server's connection is ended
// before that.
inline constexpr modules::Duration kOplockFence = std::chrono::seconds(25);

}  // namespace longhaul::smb
