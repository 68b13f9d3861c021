// SPDX-License-Identifier: Apache-2.0
// Observes one login: takes the tokens of a SESSION_SETUP exchange, and returns the session key that client
// and server agree on. Passive: it never changes a token, and does not sign messages.
//
// The far half creates one for each login, also when a session logs in again:
//
//   Login login(site.keys->of(dialled));   // null: no key for that server, so nothing is read
//   login.from_client(security buffer of each SESSION_SETUP request);
//   login.from_server(security buffer of each response, the successful one included);
//
// After the server has accepted, found() has the key or missing() the reason. `site.keys` (CurrentKeys)
// always has the keys of the last reload; a login in progress keeps those that it began with.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "crypto/secret.h"
#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/seal/kerberos.h"
#include "proxy/modules/smb/seal/ntlm.h"
#include "proxy/modules/smb/seal/server_keys.h"
#include "proxy/modules/smb/status.h"

namespace longhaul::smb::seal {

enum class Mechanism : std::uint8_t { ntlm, kerberos };

struct Found {
  SecretBytes key;  // complete: 16 bytes with NTLM, 16 or 32 with Kerberos
  Mechanism mechanism = Mechanism::ntlm;
  EncryptionType etype{};  // Kerberos: of the ticket; so is the key version
  std::uint32_t kvno = 0;
  std::string
      user;  // printable: "DOMAIN\user" or "user@REALM"; chosen by the client until the server accepts
};

struct Missing {
  modules::Reason reason;
  std::string detail;  // for the log: printable, without key material
};

class Login {
 public:
  // If `keys` is null, found() stays null.
  explicit Login(std::shared_ptr<const ServerKeys> keys);

  void from_client(Bytes token);
  void from_server(Bytes token);

  // NTLM: as soon as the client's proof is verified. Kerberos: after the client's ticket is decrypted; the
  // server's response may still replace the key, so call it after the last token.
  const Found* found() const { return found_ ? &*found_ : nullptr; }
  const Missing& missing() const { return missing_; }  // while found() is null
  // Whether the server's last token refuses the client's ticket, for the reason in missing().
  bool is_refused() const { return is_refused_; }
  // Why the server refuses the login with this status.
  Missing refused_with(Status status) const;

 private:
  void read_ntlm(Bytes token);
  void read_kerberos(Bytes token);
  void refuse(std::optional<std::int32_t> error);
  void fail(const modules::ReasonText& reason, std::string detail);

  std::shared_ptr<const ServerKeys> keys_;
  unsigned tokens_ = 0;
  bool is_refused_ = false;
  std::optional<NtlmChallenge> challenge_;
  std::optional<OpenedTicket> ticket_;
  std::optional<Found> found_;
  Missing missing_;
};

// ServerTable::opens
config::TextResult<std::string> test_keytab(const modules::ServerFile& keytab, Bytes token);

}  // namespace longhaul::smb::seal
