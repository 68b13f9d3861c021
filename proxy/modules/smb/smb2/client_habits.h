// SPDX-License-Identifier: Apache-2.0
// What a client's NEGOTIATE and SESSION_SETUP reveal about promises to it (silent_clients.h), for both
// halves: the far half must not suspect promises that its near half never makes.
#pragma once
#include "proxy/modules/smb/promise_policy.h"
#include "proxy/modules/smb/silent_clients.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::smb2 {

class ClientHabits {
 public:
  void learn(const Element& request, PromisePolicy& policy) {
    if (request.header.command == Command::negotiate) {
      if (const auto negotiate = parse_negotiate_request(request.bytes)) {
        client_ = negotiate->client_guid;
        capabilities_ = negotiate->capabilities;
        for (const NegotiateContext& context : negotiate->contexts)
          if (context.type == negotiate_context::posix_extensions) policy.client_hides_resets();
      }
    } else if (request.header.command == Command::session_setup) {
      const auto setup = parse_session_setup_request(request.bytes);
      if (!setup) return;
      if (begins_ntlm_as_linux(setup->security)) policy.client_hides_resets();
      if (authenticates_as_jcifs(setup->security, client_) ||
          may_be_jcifs_with_kerberos(setup->security, capabilities_))
        policy.client_hides_errors();
    }
  }

 private:
  Guid client_{};
  std::uint32_t capabilities_ = ~0u;
};

}  // namespace longhaul::smb::smb2
