// SPDX-License-Identifier: Apache-2.0
// The keys for logins at file servers: Kerberos keys from keytabs, and NTLM hashes of users. Immutable once
// made, shared by the sessions that use it, and wiped at the end. proxy/identity/ reads the files.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "crypto/secret.h"
#include "proxy/config/text_error.h"
#include "proxy/modules/secrets.h"

namespace longhaul::smb::seal {

// RFC 3961, section 8 and RFC 8009, section 7: the supported types.
enum class EncryptionType : std::uint16_t {
  none = 0,
  aes128_sha1 = 17,
  aes256_sha1 = 18,
  aes128_sha256 = 19,
  aes256_sha384 = 20,
  rc4 = 23,
};
std::string_view to_text(EncryptionType type);
std::size_t key_bytes(EncryptionType type);  // 0: not supported
bool is_known(EncryptionType type);

struct ServiceKey {
  std::string principal;  // "cifs/files.corp.test@CORP.TEST"
  std::u16string host;    // "FILES", also for "FILES$": determines which key to try first
  EncryptionType type{};
  std::uint32_t kvno = 0;
  SecretBytes key;
};

using NtHash = Secret<16>;
struct UserHash {
  std::u16string domain;  // in upper case; empty: any
  NtHash hash;
};

class ServerKeys {
 public:
  static constexpr std::size_t kMostKeys = 65'536;
  // How many keys one login may try: limits the work that a hostile client can cause.
  static constexpr std::size_t kMostTries = 16;

  // The content of a file. If `name` is empty, there is no file.
  struct Source {
    std::string name;
    Bytes content;
  };
  // The error is a sentence that begins with the file's name.
  static config::TextResult<std::shared_ptr<const ServerKeys>> read(const Source& keytab,
                                                                    const Source& ntlm_hashes);

  // Keys of that type in the order in which they may decrypt a ticket for this principal: of its host, then
  // of this version, then those of services and machines before those of users.
  std::vector<const ServiceKey*> keys(EncryptionType type, std::uint32_t kvno,
                                      std::string_view principal) const;
  // By the name of a user; those of this domain first.
  std::vector<const UserHash*> hashes(std::u16string_view user, std::u16string_view domain) const;

  const std::vector<ServiceKey>& all_keys() const { return keys_; }
  std::vector<std::string> lines() const;
  std::vector<std::string> warnings(const std::string& keytab) const;  // its name; empty: none

 private:
  void add_hash(std::u16string_view domain, std::u16string_view user, Bytes hash);

  std::vector<ServiceKey> keys_;
  std::unordered_map<std::u16string, std::vector<UserHash>> hashes_;
  std::vector<std::string> skipped_;  // keys of other types
  std::size_t listed_users_ = 0;
};

// The keys of all servers of a configuration.
class KeyRing final : public modules::Secrets {
 public:
  static config::TextResult<std::shared_ptr<const modules::Secrets>> read(
      std::span<const modules::ServerFiles> servers);

  // The keys for the narrowest network that contains the address; null if there is none.
  std::shared_ptr<const ServerKeys> of(const modules::Address& server) const;

  std::vector<std::string> lines() const override { return lines_; }
  std::vector<std::string> warnings() const override { return warnings_; }

 private:
  struct Entry {
    modules::AddressRange addresses;
    std::shared_ptr<const ServerKeys> keys;
  };
  std::vector<Entry> entries_;
  std::vector<std::string> lines_, warnings_;
};

// The key ring in force. A reload replaces it; later calls return the new one. Only for the loop's thread.
class CurrentKeys {
 public:
  std::shared_ptr<const ServerKeys> of(const modules::Address& server) const {
    return ring_ ? ring_->of(server) : nullptr;
  }
  void replace(std::shared_ptr<const KeyRing> ring) { ring_ = std::move(ring); }

 private:
  std::shared_ptr<const KeyRing> ring_;
};

}  // namespace longhaul::smb::seal
