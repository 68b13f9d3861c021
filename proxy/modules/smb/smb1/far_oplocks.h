// SPDX-License-Identifier: Apache-2.0
// Oplocks that the far half requests for clients that request none (like smb2/far_oplocks.h): for which
// NT_CREATEs, and how they are hidden from the client. oplock_returns.h returns them when the server breaks
// them.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "codecs/slice.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

class FarOplocks {
 public:
  // `connection` outlives this object.
  explicit FarOplocks(Connection& connection) : connection_(connection) {}

  struct Request {
    Slice frame;                     // as it is to be sent
    std::optional<FileName> cached;  // the file may be cached, under the client's oplock or one on its behalf
  };
  // [MS-CIFS] 2.2.4.64.1. A batch oplock is requested only for the first handle of a name, for data, and
  // never again after a break: two handles of one client break each other's oplocks.
  Request request(const Frame& frame, const Message& message, const Features& features);

  // The last response to this request has arrived. Returns whether an oplock was requested on the client's
  // behalf.
  bool answered(MessageNumber number) { return asked_.erase(number) != 0; }
  // Such a response in the form for the client. Also for files that are not tracked: the client has not
  // requested an oplock.
  static Slice hidden(const Frame& frame, const Message& answer);
  // The server has broken an oplock: another client uses the name.
  void broken(const FileName& name) {
    if (taken_back_.size() < kMostRemembered) taken_back_.insert(name.path);
  }

 private:
  static constexpr std::size_t kMostRemembered = 1024;

  Connection& connection_;
  std::set<MessageNumber> asked_;        // NT_CREATEs to which a request for an oplock was added
  std::set<std::u16string> taken_back_;  // names whose oplock the server has broken once
};

}  // namespace longhaul::smb::smb1
