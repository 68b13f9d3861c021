// SPDX-License-Identifier: Apache-2.0
// The content of a configuration file as plain structs: every field with its default. read.h reads it; checks
// that need the host (interfaces, ports, sysctls) are in the parts that use them.
#pragma once
#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proxy/config/features.h"
#include "proxy/config/host_port.h"
#include "proxy/config/http_base.h"
#include "proxy/config/name_pattern.h"
#include "proxy/config/network.h"
#include "proxy/config/path_policy.h"
#include "proxy/config/source.h"
#include "proxy/config/syslog.h"

namespace longhaul::config {

using namespace std::chrono_literals;

struct Identity {
  std::filesystem::path certificate;  // relative paths are relative to the configuration file
  std::filesystem::path private_key;
  bool operator==(const Identity&) const = default;
};

struct Link {
  std::optional<HostPort> listen;     // TCP and UDP; nullopt: this site only connects to others
  std::vector<Network> allow;         // destinations to which this site connects for its peers
  std::uint64_t total_rate_bits = 0;  // limit for all peers together, bits of IP packets per second; 0: none
  std::optional<std::string> key_log;  // file in state_dir for connection secrets; nullopt: not written
  std::string congestion_control = "bbr";  // the kernel's, on the TCP carrier; falls back with a warning
  bool operator==(const Link&) const = default;
};

// One of several lines to a peer: a table [[peer.path]].
struct PeerPath {
  std::string name;                 // the same at both sites
  std::optional<HostPort> address;  // of the peer on this line; nullopt: the peer connects to this site
  std::string local;                // local address or interface; empty: by the routing table
  std::uint64_t rate_bits = 0;  // this side's sending rate, bits of IP packets per second; 0: measured
  std::uint32_t cost = 1;       // used only while no path of a lower cost works
  bool operator==(const PeerPath&) const = default;
};

struct Peer {
  std::string name;
  std::optional<HostPort> address;  // nullopt: this peer connects to this site; with paths: the first one's
  std::vector<PeerPath> paths;      // empty: one line, chosen by the routing table
  static constexpr std::size_t kMostPaths = 8;
  PathPolicy policy = PathPolicy::sum;  // with paths only
  // Each "sha256:" and 64 hex digits: SHA-256 of a public key (SPKI, DER) that the peer may present. At least
  // one; several while the peer's key is being changed.
  std::vector<std::string> fingerprints;
  static constexpr std::size_t kMostFingerprints = 4;
  bool has_key(const std::string& fingerprint) const {
    return std::find(fingerprints.begin(), fingerprints.end(), fingerprint) != fingerprints.end();
  }
  std::optional<std::filesystem::path> preshared_key_file;  // an additional secret, the same at both sites
  std::vector<Network> networks;   // destinations reached through this peer, and the clients at its site
  std::vector<NamePattern> names;  // destinations given as names that this peer resolves
  // This side's sending rate, bits of IP packets per second; 0: measured, or the rate of each path.
  std::uint64_t rate_bits = 0;
  std::optional<std::uint64_t> dictionary_memory_bytes;  // nullopt: the value in [dictionary]
  std::vector<std::string> groups;                       // sharing needs [dictionary] share, too

  // All addresses to connect to, in the file's order.
  std::vector<HostPort> addresses() const {
    std::vector<HostPort> all;
    for (const PeerPath& path : paths)
      if (path.address) all.push_back(*path.address);
    if (paths.empty() && address) all.push_back(*address);
    return all;
  }
  bool operator==(const Peer&) const = default;
};

// The deduplication dictionaries.
struct Dictionary {
  std::uint64_t memory_bytes = 256ull << 20;       // for each peer and direction; 0: none
  std::uint64_t disk_bytes = 10ull << 30;          // for all peers together; 0: none
  std::optional<std::uint64_t> objects_bytes;      // beyond disk_bytes; 0: none; nullopt: a tenth of it
  std::filesystem::path directory = "dictionary";  // relative to state_dir
  std::vector<std::string> share;                  // groups whose peers may use each other's segments
  static constexpr std::uint64_t kMinMemory = 16ull << 20, kMaxMemory = 8ull << 30;
  static constexpr std::uint64_t kMinDisk = 64ull << 20, kMaxDisk = 1ull << 44;
  static constexpr std::uint64_t kMinObjects = 16ull << 20;
  std::uint64_t objects_on_disk() const {
    return disk_bytes == 0 ? 0 : objects_bytes.value_or(std::max(kMinObjects, disk_bytes / 10));
  }
  bool operator==(const Dictionary&) const = default;
};

enum class Fail : std::uint8_t { open, closed };

struct Intercept {
  enum class Mode : std::uint8_t { off, tproxy } mode = Mode::off;
  std::vector<std::string> interfaces;
  std::uint16_t port = 7650;  // the local transparent listener
  Source source = Source::automatic;
  Fail fail = Fail::open;
  bool operator==(const Intercept&) const = default;
};

struct Forward {
  HostPort listen;
  HostPort to;  // a name is resolved at the far side
  bool operator==(const Forward&) const = default;
};

struct Socks {
  std::optional<HostPort> listen;
  bool operator==(const Socks&) const = default;
};

// First match wins; an empty list matches everything. `features` are applied on top of the global ones.
struct Rule {
  std::vector<std::uint16_t> to_ports;
  std::vector<Network> to_networks;
  std::vector<Network> from_networks;
  std::vector<std::pair<std::string, std::string>> features;  // name, value, checked when read
  std::optional<Fail> fail;
  bool operator==(const Rule&) const = default;
};

// The flows that an application module may handle: the table [NAME] of the file.
struct ModuleSettings {
  std::string name;
  std::vector<std::uint16_t> ports;  // of servers
  bool any_port = false;             // also other ports, if the first bytes match its protocol
  bool operator==(const ModuleSettings&) const = default;
};

// A table [[NAME_server]] of a module: files with the secrets of servers.
struct ServerTable {
  std::string name;  // of the table
  std::vector<Network> addresses;
  std::vector<std::pair<std::string, std::filesystem::path>> files;  // the key in the table, and the file
  std::vector<std::pair<std::string, std::string>>
      held;  // the same, with a PKCS#11 URI instead of a file
  std::vector<std::pair<std::string, std::filesystem::path>> public_files;
  std::vector<NamePattern> names;
  std::vector<Network> clients;
  std::vector<std::string> off;  // keys set to false, of those that are true by default
  std::vector<std::pair<std::string, std::string>> chosen;  // keys with one of several words, and the word
  bool operator==(const ServerTable&) const = default;
};

struct Control {
  HostPort listen{"127.0.0.1", 7601};
  std::filesystem::path token_file = "control.token";  // relative to state_dir; mode 0600; created if missing
  std::optional<HostPort> tls_listen;  // for other machines, with TLS and token; nullopt: only loopback
  std::filesystem::path tls_certificate, tls_key;  // PEM; with tls_listen only
  bool operator==(const Control&) const = default;
};

// Data that the daemon sends to monitoring systems.
struct Export {
  std::optional<HostPort> ipfix;             // flow records, over UDP; nullopt: not exported
  std::uint32_t ipfix_enterprise = 32'473;   // for elements without IANA number; RFC 5612's example
  std::chrono::seconds ipfix_active_timeout{60};  // interval of reports about a live flow
  std::optional<HttpBase> otlp;              // metrics for OpenTelemetry; nullopt: not exported
  std::chrono::seconds otlp_interval{60};
  std::optional<std::filesystem::path> otlp_ca;  // PEM; CA of the collector; nullopt: the system's CAs
  bool operator==(const Export&) const = default;
};

struct Limits {
  std::uint32_t flows = 16'384;
  std::optional<std::uint32_t> flows_per_source;  // of one LAN address; nullopt: a quarter of `flows`
  std::uint32_t new_flows_per_source = 1'000;     // accepted in transparent mode from one address per second
  std::uint32_t handshakes = 256;  // incoming handshakes in progress, not counting known addresses
  std::uint64_t memory_bytes = 2ull << 30;        // of the whole process (memory_plan.h)

  std::uint32_t flows_of_one_source() const { return flows_per_source.value_or(std::max(1u, flows / 4)); }
  bool operator==(const Limits&) const = default;
};

// The privileges of the daemon.
struct Process {
  std::string user = "longhaul";  // the user to switch to when started as root; "root": stays root
  bool sandbox = true;            // a system-call filter, and Landlock where the kernel has it
  std::vector<std::filesystem::path>
      writable;                      // more paths, for the PKCS#11 library of a key's device
  bool kills_unknown_calls = false;  // otherwise they fail; clearly hostile calls always kill
  bool operator==(const Process&) const = default;
};

struct Log {
  std::string level = "info";  // error, warn, info, debug, trace
  bool json = false;
  std::optional<Syslog> syslog;  // in addition to standard error; nullopt: not sent
  bool operator==(const Log&) const = default;
};

struct Config {
  std::filesystem::path file;  // the file's name, for messages
  std::string site;
  std::filesystem::path state_dir = "/var/lib/longhaul";
  Identity identity;
  Link link;
  std::vector<Peer> peers;
  Intercept intercept;
  std::vector<Forward> forwards;
  Socks socks;
  Features features;
  std::vector<std::pair<std::string, std::string>> typed_features;  // the settings in [features], as in Rule
  std::vector<ModuleSettings> modules;  // one for each module of the program
  std::vector<ServerTable> servers;
  std::vector<Rule> rules;
  Dictionary dictionary;
  Control control;
  Export exports;
  Limits limits;
  Process process;
  Log log;
};

}  // namespace longhaul::config
