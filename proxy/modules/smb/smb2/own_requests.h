// SPDX-License-Identifier: Apache-2.0
// Requests of our own to the server, as the parts of the far half make them; server_leg.h sends them.
#pragma once
#include <functional>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/message.h"

namespace longhaul::smb::smb2 {

class OwnRequests {
 public:
  virtual ~OwnRequests() = default;

  // Sends a request of our own on an open's session and tree. `build` makes its frame for the given head.
  // `reply` receives the final response (interim ones are dropped); if the connection ends before, `reply` is
  // not called. Returns false if no ids are free, or if the connection must pass unchanged; try again when
  // FarPart::on_ids_freed() is called.
  using Build = std::function<Slice(const RequestHead& head)>;
  using Reply = std::function<void(TimePoint now, const Frame& frame, const Element& answer)>;
  virtual bool inject(SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
                      Reply reply) = 0;
  virtual bool can_inject(std::uint16_t charge) const = 0;
  // As inject(), for requests that we owe the server because of our own ones: also if nothing else may be
  // added any more, as long as ids may be (Sessions::ids_are_fixed) and the session has not expired.
  virtual bool inject_owed(SessionId session, TreeId tree, const Build& build) = 0;
  // As inject_owed(), for the acknowledgement of a break: takes any id, because requests wait for it at the
  // server.
  virtual bool acknowledge(SessionId session, TreeId tree, const Build& build) = 0;
  // As inject(), for a request that the client's requests may wait for, such as the CLOSE of a handle of
  // ours: uses an id reserved for the client, rather than waiting for ever, if no response is under way that
  // could free another.
  virtual bool inject_awaited(SessionId session, TreeId tree, const Build& build, Reply reply) = 0;
  // As inject_awaited(), for a request that the server may answer at any later time. `begun`: the server has
  // announced that.
  using Begun = std::function<void(TimePoint now)>;
  virtual bool listen(SessionId session, TreeId tree, const Build& build, Begun begun, Reply reply) = 0;
};

}  // namespace longhaul::smb::smb2
