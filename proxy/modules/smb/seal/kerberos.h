// SPDX-License-Identifier: Apache-2.0
// Kerberos in a login (RFC 4120, RFC 4121, [MS-KILE]): decrypts the client's ticket with a key of the server,
// and finds the key that both agree on. The server checks times and replays: it refuses the login.
#pragma once
#include <optional>
#include <string>

#include "crypto/secret.h"
#include "proxy/modules/smb/seal/server_keys.h"

namespace longhaul::smb::seal {

// RFC 4121, section 4.1: the type at the start of a message.
enum class KerberosToken : std::uint16_t { request = 0x0100, reply = 0x0200, error = 0x0300, none = 0 };
KerberosToken kerberos_token_type(Bytes token);

// An AP-REQ. Borrows the token.
struct ApRequest {
  EncryptionType ticket_type{};
  std::int32_t ticket_etype = 0;  // as sent, even if it is not supported
  std::uint32_t kvno = 0;         // 0: not sent
  bool user_to_user = false;    // encrypted with a session key of the server, which no keytab has
  std::string server;           // printable
  Bytes ticket, authenticator;  // encrypted
};
std::optional<ApRequest> parse_ap_request(Bytes token);

struct KerberosKey {
  EncryptionType type{};
  SecretBytes key;
};

struct OpenedTicket {
  KerberosKey ticket_key;                // encrypts the server's response
  std::optional<KerberosKey> initiator;  // the client's sub-key
  EncryptionType type{};                 // of the key that decrypted the ticket
  std::uint32_t kvno = 0;
  std::string user;         // printable
  std::string valid_until;  // printable, in UTC; not checked

  // RFC 4121, section 2, unless the server has chosen one.
  const KerberosKey& session_key() const { return initiator ? *initiator : ticket_key; }
};
// Returns nullopt if the key does not fit or the content is malformed.
std::optional<OpenedTicket> open_ticket(const ApRequest& request, const ServiceKey& key);

// The server's choice in its AP-REP.
struct ApReply {
  std::optional<KerberosKey> acceptor;  // nullopt: the client's choice remains
};
std::optional<ApReply> open_reply(const OpenedTicket& ticket, Bytes token);

// Why the server refuses a ticket, in its KRB-ERROR (RFC 4120, sections 5.9.1 and 7.5.9). Not authenticated:
// for display only.
inline constexpr std::int32_t kTicketExpired = 32, kTicketNotYetValid = 33, kClockSkewTooGreat = 37;
std::optional<std::int32_t> error_code(Bytes token);

}  // namespace longhaul::smb::seal
