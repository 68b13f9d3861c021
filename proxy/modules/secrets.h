// SPDX-License-Identifier: Apache-2.0
// Secrets of servers that the far half of a module may use, from the tables [[NAME_server]] of a
// configuration. A module says which keys such a table has and turns the files' content into an object; the
// daemon reads files.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crypto/secret.h"
#include "proxy/config/name_pattern.h"
#include "proxy/config/text_error.h"
#include "proxy/modules/held_key.h"
#include "proxy/modules/module.h"

namespace longhaul::modules {

// A network; IPv4 in IPv4-mapped form, with 96 added to the prefix.
struct AddressRange {
  Address address{};
  unsigned prefix_length = 128;
  bool contains(const Address& other) const;
};

struct ServerFile {
  std::string key;   // of the table
  std::string name;  // of the file, for messages
  SecretBytes content;
  std::shared_ptr<HeldKey> held{};  // instead of a file's content, where ServerTable::held names that key
};
struct ServerFiles {
  std::string name;  // its addresses, for messages
  std::vector<AddressRange> addresses;
  std::vector<config::NamePattern> names;  // ServerTable::has_names
  std::vector<AddressRange> clients;       // ServerTable::has_clients; empty: all
  std::vector<std::string> off;            // ServerTable::switches
  std::vector<std::pair<std::string, std::string>> chosen;  // ServerTable::choices that the table has, with their value
  std::vector<ServerFile> files;
};

// What they were read into. Immutable; wiped with its last user.
class Secrets {
 public:
  virtual ~Secrets() = default;
  virtual std::vector<std::string> lines() const = 0;  // what it holds, for `longhaul check`; no key material
  virtual std::vector<std::string> warnings() const = 0;  // sentences
  // For `longhaul check`: uses what is opened at its first use otherwise, which may take a minute. Sentences
  // about what fails.
  virtual std::vector<std::string> try_out() const { return {}; }
};

struct KeyChoice {
  std::string_view key;
  std::span<const std::string_view> values;  // the first where the table has no such key
};

// The table [[NAME_server]] of a module.
struct ServerTable {
  std::string_view name;                    // of the table; empty: the module has none
  std::span<const std::string_view> files;  // keys that name a file with secrets; at least one must be set
  std::span<const std::string_view> kept{};  // keys whose only value is "keep"
  std::span<const std::string_view> public_files{};  // keys that name files which anybody may read; optional
  std::span<const std::string_view> switches{};  // keys that are true unless they say false
  std::span<const KeyChoice> choices{};          // keys with one of several words
  std::span<const std::string_view>
      held{};                // of `files`, those that may also be a PKCS#11 URI, of a key in a device
  bool has_names = false;    // the key `names`, required: host names and "*.domain", never "*"
  bool has_clients = false;  // the key `clients`: networks
  // Errors are sentences that begin with the file's name.
  config::TextResult<std::shared_ptr<const Secrets>> (*read)(std::span<const ServerFiles> servers) = nullptr;
  // For `longhaul keytab test`, with the first of `files`: whether it opens a login with a ticket for
  // SERVICE/HOST. Both results are sentences. Null: there is no such test.
  std::string_view service;
  config::TextResult<std::string> (*opens)(const ServerFile& file, Bytes token) = nullptr;
};

}  // namespace longhaul::modules
