// SPDX-License-Identifier: Apache-2.0
// What one dialect's half of the SMB module is to the module, and what both dialects agree on about time.
// Cutting frames, choosing the dialect and gathering attached bytes are the module's (module.h).
#pragma once
#include <chrono>

#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/twin_messages.h"
#include "proxy/modules/twin/half.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::smb {

using link::TimePoint;
using twin::Side;

using Outputs = twin::Outputs<TwinMessage>;

class Half : public twin::Half<Frame, TwinMessage> {
 public:
  // Whether the next frame from there may come without a header, as raw transfers of SMB1 do.
  virtual Bare bare_from_lan() const { return Bare::unexpected; }
  virtual Bare bare_from_stream() const { return Bare::unexpected; }
};

// With smb.metadata_relaxed, answers may be older than the line was silent.
inline bool is_unheard(TimePoint now, const link::Contact& contact,
                       const modules::Surroundings& surroundings) {
  return !surroundings.features.smb_metadata_relaxed &&
         twin::is_unheard(now, contact, surroundings.round_trip);
}

// How long a server that takes back an oplock of ours may wait for the near half's word that nothing more is
// promised under it. Servers wait 30 (smbd) to 35 seconds (Windows) and give it to others then: a promised
// WRITE that came later would put old bytes over new ones. So the server's connection ends before that.
inline constexpr modules::Duration kOplockFence = std::chrono::seconds(25);

}  // namespace longhaul::smb
