// SPDX-License-Identifier: Apache-2.0
// Whether promises are made to a client at all, and the reason why not. The dialects check the conditions of
// a single WRITE.
#pragma once
#include <utility>

#include "proxy/modules/counters.h"
#include "proxy/modules/smb/features.h"
#include "proxy/modules/smb/reasons.h"

namespace longhaul::smb {

class PromisePolicy {
 public:
  // See silent_clients.h.
  void client_hides_errors() { hides_errors_ = true; }
  // The client reports errors in responses to its programs, but not a connection lost at close(). Like a
  // client that caches files itself, it gets promises only if the operator enables that.
  void client_hides_resets() { hides_resets_ = true; }

  // Open: a dialect's, with the members used here. A client that caches files itself writes them back at any
  // time, and Linux and Windows do not inform the program when that, or the CLOSE, fails.
  template <class Open>
  bool allows(Open& open, const Features& features, modules::Counters& counters) {
    if (!open.on_behalf && !features.write_behind_cached)
      return declines(open, reasons::smb_client_caches, counters);
    return may_allow(features) || declines(open, reasons::smb_hides_errors, counters);
  }
  // The part that depends on the client: if false, nothing needs a mark, and nothing is in doubt.
  bool may_allow(const Features& features) const {
    return !hides_errors_ && (!hides_resets_ || features.write_behind_cached);
  }
  // Always returns false. The file is counted once.
  template <class Open>
  bool declines(Open& open, modules::Reason reason, modules::Counters& counters) {
    if (!std::exchange(open.unpromised, true)) ++counters.unpromised_files;
    reason_ = reason;
    return false;
  }

  // Why WRITEs that could be promised are not; `optimised`: there was none.
  modules::Reason reason() const { return reason_; }

 private:
  bool hides_errors_ = false, hides_resets_ = false;
  modules::Reason reason_ = reasons::optimised;
};

}  // namespace longhaul::smb
