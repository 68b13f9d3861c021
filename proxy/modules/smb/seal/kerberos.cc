// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/kerberos.h"

#include <krb5.h>

#include <algorithm>
#include <cstring>

#include "proxy/modules/smb/seal/der.h"
#include "proxy/modules/smb/seal/names.h"

namespace longhaul::smb::seal {
namespace {

// RFC 4120, section 7.5.1
constexpr krb5_keyusage kTicketUsage = 2, kAuthenticatorUsage = 11, kReplyUsage = 12;
// A ticket with the groups of a user has 1 to 12 KB ([MS-KILE] 3.1.1.2 allows 64 KB).
constexpr std::size_t kMostSealedBytes = 64 * 1024;
// RFC 4120, section 5.10: tags of messages.
constexpr unsigned kTicketTag = 1, kAuthenticatorTag = 2, kEncTicketPartTag = 3, kApReqTag = 14,
                   kApRepTag = 15, kEncApRepPartTag = 27, kErrorTag = 30;
constexpr unsigned kRequestType = 14, kReplyType = 15, kErrorType = 30, kVersion = 5;

struct EncryptedData {
  std::int32_t etype = 0;
  std::uint32_t kvno = 0;
  Bytes cipher;
};

// RFC 4120, section 5.2.9
std::optional<EncryptedData> parse_encrypted(std::optional<Bytes> element) {
  if (!element) return std::nullopt;
  const auto sequence = DerReader(*element).take(der::kSequence);
  if (!sequence) return std::nullopt;
  DerReader fields(*sequence);
  const auto etype = fields.integer(0);
  if (!etype) return std::nullopt;
  const std::uint32_t kvno = static_cast<std::uint32_t>(fields.integer(1).value_or(0));
  const auto cipher = fields.field(2, der::kOctetString);
  if (!cipher || cipher->size() > kMostSealedBytes) return std::nullopt;
  return EncryptedData{.etype = *etype, .kvno = kvno, .cipher = *cipher};
}

EncryptionType type_of(std::int32_t etype) {
  const auto type = etype > 0 && etype < 0x10000 ? static_cast<EncryptionType>(etype) : EncryptionType::none;
  return is_known(type) ? type : EncryptionType::none;
}

// RFC 4120, section 5.2.2: name [0], strings [1]
std::string principal_name(std::optional<Bytes> element) {
  std::string name;
  if (!element) return name;
  const auto sequence = DerReader(*element).take(der::kSequence);
  if (!sequence) return name;
  DerReader fields(*sequence);
  const auto strings = fields.field(1, der::kSequence);
  if (!strings) return name;
  DerReader parts(*strings);
  while (const auto part = parts.take(der::kGeneralString)) {
    if (!name.empty()) name += '/';
    name += as_text(*part).substr(0, 256);
    if (name.size() > 256) break;
  }
  return name;
}

std::string full_name(const std::string& name, std::optional<Bytes> realm) {
  return printable_name(name) + (realm ? "@" + printable_name(as_text(*realm)) : "");
}

// The decrypted text; shorter than its memory.
struct Plain {
  SecretBytes room;
  std::size_t size = 0;
  Bytes bytes() const { return Bytes(room).first(size); }
};

// RFC 3961 and others, by MIT's library, which here uses neither files nor its context.
std::optional<Plain> decrypt(EncryptionType type, Bytes key, krb5_keyusage usage, Bytes cipher) {
  std::size_t random = 0, length = 0;
  const auto etype = static_cast<krb5_enctype>(type);
  if (!is_known(type) || krb5_c_keylengths(nullptr, etype, &random, &length) != 0 || key.size() != length)
    return std::nullopt;
  krb5_keyblock block{};
  block.enctype = etype;
  block.length = static_cast<unsigned>(key.size());
  block.contents = const_cast<krb5_octet*>(reinterpret_cast<const krb5_octet*>(key.data()));
  krb5_enc_data sealed{};
  sealed.enctype = etype;
  sealed.ciphertext.length = static_cast<unsigned>(cipher.size());
  sealed.ciphertext.data = const_cast<char*>(as_text(cipher).data());
  Plain plain{.room = SecretBytes(cipher.size())};
  krb5_data opened{};
  opened.length = static_cast<unsigned>(plain.room.size());
  opened.data = reinterpret_cast<char*>(plain.room.data());
  if (krb5_c_decrypt(nullptr, &block, usage, nullptr, &sealed, &opened) != 0) return std::nullopt;
  plain.size = opened.length;
  return plain;
}

// RFC 4120, section 5.2.9; nullopt for a type that this program does not support.
std::optional<KerberosKey> parse_key(std::optional<Bytes> element) {
  if (!element) return std::nullopt;
  const auto sequence = DerReader(*element).take(der::kSequence);
  if (!sequence) return std::nullopt;
  DerReader fields(*sequence);
  const auto etype = fields.integer(0);
  const auto value = fields.field(1, der::kOctetString);
  if (!etype || !value || value->empty() || type_of(*etype) == EncryptionType::none || value->size() > 32)
    return std::nullopt;
  KerberosKey key{.type = type_of(*etype), .key = SecretBytes(value->size())};
  std::memcpy(key.key.data(), value->data(), value->size());
  return key;
}

// A message inside its application tag: the fields of its SEQUENCE.
std::optional<DerReader> message_fields(Bytes bytes, unsigned tag) {
  const auto content = DerReader(bytes).take(der::application(tag));
  const auto sequence = content ? DerReader(*content).take(der::kSequence) : std::nullopt;
  return sequence ? std::optional(DerReader(*sequence)) : std::nullopt;
}

Bytes behind_type(Bytes token) { return token.subspan(std::min<std::size_t>(2, token.size())); }

}  // namespace

KerberosToken kerberos_token_type(Bytes token) {
  if (token.size() < 2 || token[1] != std::byte{0}) return KerberosToken::none;
  const auto type = static_cast<KerberosToken>(std::to_integer<unsigned>(token[0]) << 8);
  const bool known =
      type == KerberosToken::request || type == KerberosToken::reply || type == KerberosToken::error;
  return known ? type : KerberosToken::none;
}

// RFC 4120, section 5.5.1
std::optional<ApRequest> parse_ap_request(Bytes token) {
  auto fields = message_fields(behind_type(token), kApReqTag);
  if (!fields || fields->integer(0) != kVersion || fields->integer(1) != kRequestType) return std::nullopt;
  const auto options = fields->field(2, der::kBitString);
  const auto wrapped = fields->field(3);
  const auto authenticator = parse_encrypted(fields->field(4));
  // Options: a count of unused bits, then the bits; bit 1 is use-session-key.
  if (!options || options->size() < 2 || !wrapped || !authenticator) return std::nullopt;
  auto ticket = message_fields(*wrapped, kTicketTag);
  if (!ticket || ticket->integer(0) != kVersion) return std::nullopt;
  const auto realm = ticket->field(1, der::kGeneralString);
  const std::string server = principal_name(ticket->field(2));
  const auto sealed = parse_encrypted(ticket->field(3));
  if (!sealed) return std::nullopt;
  return ApRequest{.ticket_type = type_of(sealed->etype),
                   .ticket_etype = sealed->etype,
                   .kvno = sealed->kvno,
                   .user_to_user = ((*options)[1] & std::byte{0x40}) != std::byte{0},
                   .server = full_name(server, realm),
                   .ticket = sealed->cipher,
                   .authenticator = authenticator->cipher};
}

std::optional<OpenedTicket> open_ticket(const ApRequest& request, const ServiceKey& key) {
  if (key.type != request.ticket_type) return std::nullopt;
  const auto part = decrypt(key.type, key.key, kTicketUsage, request.ticket);
  if (!part) return std::nullopt;
  // RFC 4120, section 5.3
  auto fields = message_fields(part->bytes(), kEncTicketPartTag);
  if (!fields) return std::nullopt;
  auto ticket_key = parse_key(fields->field(1));
  if (!ticket_key) return std::nullopt;
  const auto realm = fields->field(2, der::kGeneralString);
  const std::string client = principal_name(fields->field(3));
  const auto ends = fields->field(7, der::kGeneralizedTime);
  OpenedTicket opened{.ticket_key = *std::move(ticket_key),
                      .type = key.type,
                      .kvno = key.kvno,
                      .user = full_name(client, realm),
                      .valid_until = ends ? printable_name(as_text(*ends)) : std::string()};
  // Section 5.5.1: encrypted with the ticket's key.
  const auto proof =
      decrypt(opened.ticket_key.type, opened.ticket_key.key, kAuthenticatorUsage, request.authenticator);
  if (!proof) return std::nullopt;
  auto said = message_fields(proof->bytes(), kAuthenticatorTag);
  if (!said) return std::nullopt;
  if (const auto subkey = said->field(6)) {
    opened.initiator = parse_key(subkey);
    if (!opened.initiator) return std::nullopt;
  }
  return opened;
}

// RFC 4120, section 5.5.2
std::optional<ApReply> open_reply(const OpenedTicket& ticket, Bytes token) {
  auto fields = message_fields(behind_type(token), kApRepTag);
  if (!fields || fields->integer(0) != kVersion || fields->integer(1) != kReplyType) return std::nullopt;
  const auto sealed = parse_encrypted(fields->field(2));
  if (!sealed) return std::nullopt;
  const auto part = decrypt(ticket.ticket_key.type, ticket.ticket_key.key, kReplyUsage, sealed->cipher);
  if (!part) return std::nullopt;
  auto said = message_fields(part->bytes(), kEncApRepPartTag);
  if (!said) return std::nullopt;
  ApReply reply;
  if (const auto subkey = said->field(2)) {
    reply.acceptor = parse_key(subkey);
    if (!reply.acceptor) return std::nullopt;
  }
  return reply;
}

std::optional<std::int32_t> error_code(Bytes token) {
  auto fields = message_fields(behind_type(token), kErrorTag);
  if (!fields || fields->integer(0) != kVersion || fields->integer(1) != kErrorType) return std::nullopt;
  return fields->integer(6);
}

}  // namespace longhaul::smb::seal
