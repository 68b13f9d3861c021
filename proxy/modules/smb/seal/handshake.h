// SPDX-License-Identifier: Apache-2.0
// The far half's part in NEGOTIATE and SESSION_SETUP: what both legs agree on, and the keys of a session that
// has logged in, from the keys of its server (login.h). Receives every such message once, before it is passed
// on.
#pragma once
#include <memory>
#include <optional>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/seal/agreement.h"
#include "proxy/modules/smb/seal/login.h"
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::seal {

class Handshake {
 public:
  explicit Handshake(std::shared_ptr<const ServerKeys> keys) : keys_(std::move(keys)) {}

  // A request; returns what is to be sent to the server.
  Frame from_client(const Frame& frame);

  // A session whose login the server has accepted.
  struct Session {
    smb2::SessionId id = 0;
    Agreement agreement;  // the result of NEGOTIATE, and the requirements of this login
    Found found;
    SessionKeys for_client, for_server;
  };
  struct Answer {
    Frame frame;  // as it is to be sent to the client
    std::optional<Session> session;
    std::optional<Missing> missing;             // this response begins a session whose key was not found
    std::optional<Missing> refused;             // the server has refused a login or its ticket
    bool broken = false;                        // NEGOTIATE is not supported but was already changed: reset
    std::optional<smb2::SessionId> logged_off;  // if the response is the server's: call end() then
  };
  Answer from_server(const Frame& frame);
  void end(smb2::SessionId session) { done_.erase(session); }

  const Agreement& agreement() const { return agreement_; }
  // The legs have different keys: a session without a known key cannot continue.
  bool is_changed() const { return changed_; }

  // Beyond this, the login that waits longest is dropped: clients may abandon some.
  static constexpr std::size_t kMostLogins = 64;
  static constexpr std::size_t kMostSessions = 256;

 private:
  struct Setup {
    Login login;
    PreauthValue client, server;
    bool must_sign = false;   // required by the client
    std::uint64_t asked = 0;  // the number of its last request
  };

  void negotiated(const Frame& frame, const smb2::Element& element, Answer& answer);
  void set_up(const Frame& frame, const smb2::Element& element, Answer& answer);
  void make_room();

  std::shared_ptr<const ServerKeys> keys_;
  std::optional<Frame> request_;  // NEGOTIATE, as the client sent it
  bool negotiated_ = false, changed_ = false;
  Agreement agreement_;
  PreauthValue client_{}, server_{};  // after NEGOTIATE
  KeyedMap<smb2::MessageId, Setup> asked_;    // by their unanswered request
  KeyedMap<smb2::SessionId, Setup> between_;  // by sessions that wait for their next request
  std::uint64_t requests_ = 0;                // number of login requests
  KeyedSet<smb2::SessionId> done_;            // logged in: later logins keep their keys
};

}  // namespace longhaul::smb::seal
