// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/login.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "proxy/modules/smb/seal/names.h"
#include "proxy/modules/smb/seal/spnego.h"

namespace longhaul::smb::seal {
namespace {

using Kind = MechanismToken::Kind;

// SPNEGO needs up to four; a client that sends more than this is no longer parsed.
constexpr unsigned kMostTokens = 12;
// SESSION_SETUP has a 16-bit length.
constexpr std::size_t kMostTokenBytes = 64 * 1024;

SecretBytes copy_of(const SecretBytes& key) {
  SecretBytes copy(key.size());
  if (!key.empty()) std::memcpy(copy.data(), Bytes(key).data(), key.size());
  return copy;
}

std::string type_text(const ApRequest& request) {
  return request.ticket_type == EncryptionType::none ? "etype " + std::to_string(request.ticket_etype)
                                                     : std::string(to_text(request.ticket_type));
}

// Lists the available keys, so that an operator sees which key is missing.
std::string no_key_text(const ApRequest& request, const ServerKeys& keys) {
  std::string text = "the ticket for " + request.server + " (" + type_text(request) +
                     (request.kvno ? ", key version " + std::to_string(request.kvno) : "") +
                     ") matches no key of the keytab, which has ";
  std::vector<std::uint32_t> versions;
  for (const ServiceKey& key : keys.all_keys())
    if (key.type == request.ticket_type && std::ranges::find(versions, key.kvno) == versions.end() &&
        versions.size() < 8)
      versions.push_back(key.kvno);
  if (versions.empty()) return text + (keys.all_keys().empty() ? "no keys" : "no key of that type");
  text += "key version";
  for (std::size_t i = 0; i < versions.size(); ++i) text += (i ? ", " : " ") + std::to_string(versions[i]);
  return text + " of that type";
}

}  // namespace

Login::Login(std::shared_ptr<const ServerKeys> keys)
    : keys_(std::move(keys)), missing_{reasons::smb_login, "no login was observed"} {}

void Login::fail(const modules::ReasonText& reason, std::string detail) {
  is_refused_ = false;
  ticket_.reset();
  found_.reset();
  missing_ = {reason, std::move(detail)};
}

void Login::from_client(Bytes buffer) {
  if (!keys_) return;
  if (++tokens_ > kMostTokens || buffer.size() > kMostTokenBytes)
    return fail(reasons::smb_login, "the login has too many tokens or a token that is too long");
  const MechanismToken token = unwrap(buffer);
  if (token.kind == Kind::none) return;  // the last message, which only confirms
  // Only the mechanism that the client finally uses counts, and not what it has sent before.
  fail(reasons::smb_login, "the client did not complete the login");
  switch (token.kind) {
    case Kind::none:
      return;
    case Kind::ntlm:
      return read_ntlm(token.token);
    case Kind::kerberos:
      return read_kerberos(token.token);
    case Kind::other:
    case Kind::malformed:
      return fail(reasons::smb_login, "the client logged in with " + std::string(token.name));
  }
}

void Login::from_server(Bytes buffer) {
  if (!keys_ || ++tokens_ > kMostTokens || buffer.size() > kMostTokenBytes) return;
  const MechanismToken token = unwrap(buffer);
  if (token.kind == Kind::ntlm && !ticket_) {
    if (const auto challenge = parse_ntlm_challenge(token.token)) challenge_ = challenge;
  } else if (ticket_ && token.kind != Kind::none) {
    if (token.kind == Kind::kerberos && kerberos_token_type(token.token) == KerberosToken::error)
      return refuse(error_code(token.token));
    if (token.kind != Kind::kerberos || kerberos_token_type(token.token) != KerberosToken::reply)
      return refuse({});
    const auto reply = open_reply(*ticket_, token.token);
    if (!reply)
      return fail(reasons::smb_login, "the server's reply to the client's ticket cannot be decrypted");
    if (reply->acceptor) found_->key = copy_of(reply->acceptor->key);
  }
}

// Some clients correct their time by the server's, and retry once. For a slow clock a ticket is not valid
// yet, for a fast one it has expired.
void Login::refuse(std::optional<std::int32_t> error) {
  const std::string user = ticket_->user;
  if (error == kClockSkewTooGreat) {
    fail(reasons::smb_clock,
         "the server refused the ticket of " + user + " because the clocks differ too much");
  } else if (error == kTicketNotYetValid) {
    fail(reasons::smb_clock, "by the server's clock, the ticket of " + user + " is not valid yet");
  } else if (error == kTicketExpired) {
    fail(reasons::smb_clock, "by the server's clock, the ticket of " + user + " has expired");
  } else {
    fail(reasons::smb_login, "the server refused the client's ticket" +
                                 (error ? ": Kerberos error " + std::to_string(*error) : ""));
  }
  is_refused_ = true;
}

Missing Login::refused_with(Status status) const {
  if (is_refused_) return missing_;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", static_cast<unsigned>(status));
  // Not all servers report that a ticket has expired for them.
  const bool has_end = ticket_ && !ticket_->valid_until.empty();
  return {reasons::smb_login,
          "the server refused the login" + (found_ ? " of " + found_->user : "") +
              (has_end ? ", whose ticket is valid until " + ticket_->valid_until + "," : "") +
              " with status " + text.data()};
}

void Login::read_ntlm(Bytes token) {
  if (ntlm_message_type(token) == 1) return;  // NEGOTIATE
  const auto message = parse_ntlm_authenticate(token);
  if (!message) return fail(reasons::smb_login, "the client sent a malformed NTLM message");
  if (message->is_anonymous()) return fail(reasons::smb_anonymous, "the client logged in anonymously");
  const std::u16string user = message->user_name(), domain = message->domain_name();
  const std::string shown = (domain.empty() ? "" : printable_name(domain) + "\\") + printable_name(user);
  if (message->is_version1()) return fail(reasons::smb_old_ntlm, shown + " logged in with NTLMv1 or LM");
  if (!challenge_) return fail(reasons::smb_login, "the server sent no NTLM challenge");
  const auto hashes = keys_->hashes(user, domain);
  for (const UserHash* each : hashes)
    if (auto key = ntlm_key(*challenge_, *message, each->hash)) {
      found_ = Found{.key = *std::move(key), .mechanism = Mechanism::ntlm, .user = shown};
      return;
    }
  fail(reasons::smb_ntlm_user, hashes.empty() ? "there is no NTLM hash for " + shown
                                              : "the NTLM hash for " + shown + " does not match the login");
}

void Login::read_kerberos(Bytes token) {
  const auto request =
      kerberos_token_type(token) == KerberosToken::request ? parse_ap_request(token) : std::nullopt;
  if (!request) return fail(reasons::smb_login, "the client sent a malformed Kerberos message");
  if (request->user_to_user)
    return fail(reasons::smb_login, "the client logged in with a Kerberos user-to-user ticket");
  for (const ServiceKey* key : keys_->keys(request->ticket_type, request->kvno, request->server))
    if (auto opened = open_ticket(*request, *key)) {
      ticket_ = std::move(opened);
      found_ = Found{.key = copy_of(ticket_->session_key().key),
                     .mechanism = Mechanism::kerberos,
                     .etype = ticket_->type,
                     .kvno = ticket_->kvno,
                     .user = ticket_->user};
      return;
    }
  fail(reasons::smb_ticket, no_key_text(*request, *keys_));
}

config::TextResult<std::string> test_keytab(const modules::ServerFile& keytab, Bytes token) {
  const auto keys = ServerKeys::read({.name = keytab.name, .content = keytab.content}, {});
  if (!keys) return keys.error();
  Login login(*keys);
  login.from_client(token);
  const Found* found = login.found();
  if (!found)
    return config::TextError{keytab.name + " does not match the server: " + login.missing().detail + "."};
  return {boost::system::in_place_value,
          keytab.name + " matches the server: its ticket can be decrypted with the " +
              std::string(to_text(found->etype)) + " key of version " + std::to_string(found->kvno) + "."};
}

}  // namespace longhaul::smb::seal
