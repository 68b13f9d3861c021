// SPDX-License-Identifier: Apache-2.0
// Secrets of servers that the far half of a module may use, from the tables [[NAME_server]] of a
// configuration. A module defines the keys of such a table and parses the content of the files; the daemon
// reads the files.
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
  std::shared_ptr<HeldKey> held{};  // instead of a file's content, for keys in ServerTable::held
};
struct ServerFiles {
  std::string name;  // the table's addresses, for messages
  std::vector<AddressRange> addresses;
  std::vector<config::NamePattern> names;  // ServerTable::has_names
  std::vector<AddressRange> clients;       // ServerTable::has_clients; empty: all
  std::vector<std::string> off;            // ServerTable::switches
  std::vector<std::pair<std::string, std::string>> chosen;  // ServerTable::choices that are set
  std::vector<ServerFile> files;
};

// The parsed secrets. Immutable; wiped when the last user releases them.
class Secrets {
 public:
  virtual ~Secrets() = default;
  virtual std::vector<std::string> lines() const = 0;  // a description for `longhaul check`; no key material
  virtual std::vector<std::string> warnings() const = 0;  // sentences
  // For `longhaul check`: tests parts that are otherwise opened at their first use, which may take a minute.
  // Returns sentences about failures.
  virtual std::vector<std::string> try_out() const { return {}; }
};

struct KeyChoice {
  std::string_view key;
  std::span<const std::string_view> values;  // the first is the default
};

// The table [[NAME_server]] of a module.
struct ServerTable {
  std::string_view name;                    // of the table; empty if the module has none
  std::span<const std::string_view> files;  // keys that name a file with secrets; at least one must be set
  std::span<const std::string_view> kept{};  // keys whose only value is "keep"
  std::span<const std::string_view> public_files{};  // keys that name files without secrets; optional
  std::span<const std::string_view> switches{};  // keys that are true by default
  std::span<const KeyChoice> choices{};          // keys with one of several words
  std::span<const std::string_view>
      held{};                // those of `files` that may also be a PKCS#11 URI of a key in a device
  bool has_names = false;    // the key `names`, required: host names and "*.domain", never "*"
  bool has_clients = false;  // the key `clients`: networks
  // Errors are sentences that begin with the file's name.
  config::TextResult<std::shared_ptr<const Secrets>> (*read)(std::span<const ServerFiles> servers) = nullptr;
  // For `longhaul keytab test`, with the first of `files`: whether it can decrypt a ticket for SERVICE/HOST.
  // Both results are sentences. Null if there is no such test.
  std::string_view service;
  config::TextResult<std::string> (*opens)(const ServerFile& file, Bytes token) = nullptr;
};

}  // namespace longhaul::modules
