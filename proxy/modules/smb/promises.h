// SPDX-License-Identifier: Apache-2.0
// The ledger of early responses (promises/ledger.h) with SMB's statuses.
#pragma once
#include "proxy/modules/promises/ledger.h"
#include "proxy/modules/smb/status.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb {

class Promises final : public Ledger {
 public:
  std::optional<Settled> kept(Message message, Status status, std::uint32_t written_bytes) {
    const Outcome outcome = status == Status::success ? Outcome::success
                            : is_error(status)        ? Outcome::error
                                                      : Outcome::warning;
    return Ledger::kept(message, outcome, written_bytes);
  }
  // The status of a response to a WRITE, FLUSH or CLOSE that is sent to the client now; not STATUS_PENDING.
  Status settle(const Open& open, Status status) {
    return reports_loss(open) ? Status::lost_writebehind_data : status;
  }
};

}  // namespace longhaul::smb
