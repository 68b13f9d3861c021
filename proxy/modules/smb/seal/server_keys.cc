// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/server_keys.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "proxy/modules/smb/seal/hash_list.h"
#include "proxy/modules/smb/seal/keytab.h"
#include "proxy/modules/smb/seal/names.h"

namespace longhaul::smb::seal {
namespace {

constexpr std::string_view kKeytab = "keytab", kHashes = "ntlm_hashes";

std::string_view without_realm(std::string_view principal) {
  return principal.substr(0, std::min(principal.rfind('@'), principal.size()));
}

// Whether the principal belongs to a host: its machine account, or a service.
bool is_service(std::string_view principal) {
  const std::string_view name = without_realm(principal);
  return name.ends_with('$') || name.find('/') != std::string_view::npos;
}

// In upper case and without a domain, because a machine has several names: those of its services and its
// account.
std::u16string host_of(std::string_view principal) {
  std::string_view name = without_realm(principal);
  if (const auto slash = name.find('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  return upper(from_utf8(name.substr(0, std::min(name.find_first_of("$./"), name.size()))));
}

bool is_file_service(std::string_view principal) {
  const std::u16string name = upper(from_utf8(without_realm(principal)));
  return name.starts_with(u"CIFS/") || name.starts_with(u"HOST/") || name.ends_with(u'$');
}

}  // namespace

std::string_view to_text(EncryptionType type) {
  switch (type) {
    case EncryptionType::aes128_sha1:
      return "aes128-cts-hmac-sha1-96";
    case EncryptionType::aes256_sha1:
      return "aes256-cts-hmac-sha1-96";
    case EncryptionType::aes128_sha256:
      return "aes128-cts-hmac-sha256-128";
    case EncryptionType::aes256_sha384:
      return "aes256-cts-hmac-sha384-192";
    case EncryptionType::rc4:
      return "arcfour-hmac";
    case EncryptionType::none:
      break;
  }
  return "unknown";
}

std::size_t key_bytes(EncryptionType type) {
  switch (type) {
    case EncryptionType::aes128_sha1:
    case EncryptionType::aes128_sha256:
    case EncryptionType::rc4:
      return 16;
    case EncryptionType::aes256_sha1:
    case EncryptionType::aes256_sha384:
      return 32;
    case EncryptionType::none:
      break;
  }
  return 0;
}

bool is_known(EncryptionType type) { return key_bytes(type) != 0; }

config::TextResult<std::shared_ptr<const ServerKeys>> ServerKeys::read(const Source& keytab,
                                                                       const Source& hashes) {
  auto keys = std::make_shared<ServerKeys>();
  if (!keytab.name.empty()) {
    auto parsed = parse_keytab(keytab.content);
    if (!parsed) return config::TextError{keytab.name + " " + parsed.error().message + "."};
    keys->keys_ = std::move(parsed->keys);
    keys->skipped_ = std::move(parsed->skipped);
    for (ServiceKey& key : keys->keys_) key.host = host_of(key.principal);
    std::ranges::stable_partition(keys->keys_,
                                  [](const ServiceKey& key) { return is_service(key.principal); });
  }
  if (!hashes.name.empty()) {
    const auto add = [&](std::u16string_view domain, std::u16string_view user, Bytes hash) {
      keys->add_hash(domain, user, hash);
      ++keys->listed_users_;
    };
    const auto parsed = parse_hash_list(as_text(hashes.content), add);
    if (!parsed) return config::TextError{hashes.name + " " + parsed.error().message + "."};
  }
  // RFC 4757, section 2: a key of this type is the NT hash of the account's password.
  for (const ServiceKey& key : keys->keys_) {
    const std::string_view user = without_realm(key.principal);
    if (key.type == EncryptionType::rc4 && user.find('/') == std::string_view::npos)
      keys->add_hash({}, from_utf8(user), key.key);
  }
  return std::shared_ptr<const ServerKeys>(std::move(keys));
}

void ServerKeys::add_hash(std::u16string_view domain, std::u16string_view user, Bytes hash) {
  UserHash added{.domain = upper(domain)};
  std::memcpy(added.hash.bytes.data(), hash.data(), added.hash.bytes.size());
  hashes_[upper(user)].push_back(std::move(added));
}

std::vector<const ServiceKey*> ServerKeys::keys(EncryptionType type, std::uint32_t kvno,
                                                std::string_view principal) const {
  std::vector<const ServiceKey*> found;
  const std::u16string host = host_of(principal);
  const auto add = [&](bool of_host, bool of_version) {
    for (const ServiceKey& key : keys_) {
      if (found.size() == kMostTries) return;
      if (key.type != type || (key.kvno == kvno) != of_version || (key.host == host) != of_host) continue;
      // A machine has many names and one key.
      const auto same = [&](const ServiceKey* other) { return other->key == key.key; };
      if (std::ranges::none_of(found, same)) found.push_back(&key);
    }
  };
  for (const bool of_host : {true, false})
    for (const bool of_version : {true, false}) add(of_host, of_version);
  return found;
}

std::vector<const UserHash*> ServerKeys::hashes(std::u16string_view user, std::u16string_view domain) const {
  std::vector<const UserHash*> found;
  auto listed = hashes_.find(upper(user));
  // user@domain: the domain is then empty.
  if (const auto at = user.find(u'@'); listed == hashes_.end() && at != std::u16string_view::npos)
    listed = hashes_.find(upper(user.substr(0, at)));
  if (listed == hashes_.end()) return found;
  const std::u16string wanted = upper(domain);
  for (const bool same : {true, false})
    for (const UserHash& each : listed->second)
      if ((each.domain == wanted) == same && found.size() < kMostTries) found.push_back(&each);
  return found;
}

std::vector<std::string> ServerKeys::lines() const {
  std::map<std::string, std::map<std::uint32_t, std::set<EncryptionType>>> principals;
  std::size_t users = 0;
  for (const ServiceKey& key : keys_) {
    if (is_service(key.principal))
      principals[printable_name(key.principal)][key.kvno].insert(key.type);
    else
      ++users;
  }
  std::vector<std::string> lines;
  for (const auto& [principal, versions] : principals)
    for (const auto& [kvno, types] : versions) {
      std::string line = principal + ", key version " + std::to_string(kvno) + ":";
      for (const EncryptionType type : types) (line += ' ') += to_text(type);
      lines.push_back(std::move(line));
    }
  if (users) lines.push_back(std::to_string(users) + " keys of users");
  if (listed_users_) lines.push_back(std::to_string(listed_users_) + " NTLM hashes of users");
  return lines;
}

std::vector<std::string> ServerKeys::warnings(const std::string& keytab) const {
  std::vector<std::string> warnings;
  if (keytab.empty()) {
    warnings.push_back(
        "There is no keytab, so sessions with a Kerberos login cannot be opened, only those of NTLM users "
        "with a "
        "hash.");
    return warnings;
  }
  bool aes = false, file_service = false;
  for (const ServiceKey& key : keys_) {
    if (!is_file_service(key.principal)) continue;
    file_service = true;
    aes = aes || key.type != EncryptionType::rc4;
  }
  if (!file_service)
    warnings.push_back(
        keytab +
        " has no key of a file server: neither cifs/HOST, host/HOST nor a machine account (HOST$). "
        "Tickets for the server cannot be decrypted.");
  else if (!aes)
    warnings.push_back(
        keytab +
        " has only RC4 keys (arcfour-hmac) of the file server, but domains issue AES tickets; export "
        "the AES keys as well.");
  for (const std::string& name : skipped_)
    warnings.push_back(keytab + ": the key of " + name + " has an unsupported type and is not used.");
  return warnings;
}

config::TextResult<std::shared_ptr<const modules::Secrets>> KeyRing::read(
    std::span<const modules::ServerFiles> servers) {
  auto ring = std::make_shared<KeyRing>();
  for (const modules::ServerFiles& server : servers) {
    ServerKeys::Source keytab, hashes;
    for (const modules::ServerFile& file : server.files) {
      if (file.key == kKeytab) keytab = {file.name, file.content};
      if (file.key == kHashes) hashes = {file.name, file.content};
    }
    auto keys = ServerKeys::read(keytab, hashes);
    if (!keys) return keys.error();
    for (const std::string& line : (*keys)->lines()) ring->lines_.push_back(server.name + ": " + line);
    for (std::string& warning : (*keys)->warnings(keytab.name)) ring->warnings_.push_back(std::move(warning));
    for (const modules::AddressRange& range : server.addresses) ring->entries_.push_back({range, *keys});
  }
  return std::shared_ptr<const modules::Secrets>(std::move(ring));
}

std::shared_ptr<const ServerKeys> KeyRing::of(const modules::Address& server) const {
  const Entry* best = nullptr;
  for (const Entry& entry : entries_)
    if (entry.addresses.contains(server) &&
        (!best || entry.addresses.prefix_length > best->addresses.prefix_length))
      best = &entry;
  return best ? best->keys : nullptr;
}

}  // namespace longhaul::smb::seal
