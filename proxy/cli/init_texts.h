// SPDX-License-Identifier: Apache-2.0
// The texts that `longhaul init` writes and prints: a minimal configuration, a [[peer]] to add to one, and
// the command for the other site. Pure; the values are checked by parsing the text as a configuration.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace longhaul::cli {

inline constexpr const char* kPort = ":7600";  // port of the link

enum class Role { branch, datacenter };  // the branch connects to the data centre

struct NewPeer {
  std::string name;
  std::optional<std::string> address;  // nullopt: it connects to this site
  std::string fingerprint;
  std::vector<std::string> networks;
};

struct NewSite {
  std::string name;
  Role role = Role::branch;
  std::string interface;              // towards the clients
  std::vector<std::string> networks;  // this site's networks with servers
  std::optional<NewPeer> peer;        // nullopt: added later
};

std::string configuration_text(const NewSite& site);
std::string peer_text(const NewPeer& peer);

// For a shell at the other site; adds `site` as its peer.
std::string command_for_other_site(const NewSite& site, const std::string& own_address, const std::string& fingerprint);

}  // namespace longhaul::cli
