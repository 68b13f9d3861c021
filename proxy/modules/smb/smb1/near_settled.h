// SPDX-License-Identifier: Apache-2.0
// Informs the far half which files may have lost writes if this proxy fails (like smb2/near_settled.h).
// near.cc sends the daemon's number.
#pragma once
#include <optional>

#include "proxy/modules/promises/live_promises.h"
#include "proxy/modules/promises/settling.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/promise_policy.h"
#include "proxy/modules/smb/promises.h"
#include "proxy/modules/smb/silent_clients.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

// Whether the far half watches the open because it may have, or get, promises.
inline bool may_be_written_behind(const Open& open) {
  return open.was_write_cached && open.may_write && !open.unnamed;
}

// Evaluates what the client reveals of itself about promises to it.
inline void learn_client(const Message& request, PromisePolicy& policy) {
  for (const Block& block : request.blocks) {
    if (block.command != Command::session_setup_andx) continue;
    if (names_jcifs(block.bytes)) policy.client_hides_errors();
    if (names_linux(block.bytes)) policy.client_hides_resets();
  }
}

class NearSettled {
 public:
  NearSettled(Outputs& out, Connection& connection, const Promises& promises, LivePromises& live)
      : out_(out), connection_(connection), promises_(promises), live_(live) {}

  // The file was opened, or a WRITE on it was requested.
  void active(TimePoint now, const Open& open) {
    if (may_be_written_behind(open) && !open.settled) settling_.active(open.key, now);
  }
  void passed_write(const Open& open, MessageNumber number) {
    if (open.settled) settling_.passed_after(number);
  }
  void answered_write(TimePoint now, const OpenKey& key, MessageNumber number) {
    if (!settling_.revives(number)) return;
    Open* open = connection_.open(key);
    if (!open) return;
    open->settled = false;
    active(now, *open);
  }
  void closed(const OpenKey& key) { settling_.forget(key); }
  void on_timeout(TimePoint now) {
    while (const auto key = settling_.poll_quiet(now)) {
      Open* open = connection_.open(*key);
      if (!open) continue;
      if (promises_.waiting(*key) != 0 || promises_.lost(*key)) {
        settling_.active(*key, now);
        continue;
      }
      open->settled = true;
      ++open->times_settled;
      live_.unmark(*key);
      out_.tell(Settled{*key});
    }
  }
  std::optional<TimePoint> next_timeout() const { return settling_.next_timeout(); }

 private:
  Outputs& out_;
  Connection& connection_;
  const Promises& promises_;
  LivePromises& live_;
  Settling settling_;
};

}  // namespace longhaul::smb::smb1
