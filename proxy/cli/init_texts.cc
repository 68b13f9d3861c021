// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/init_texts.h"

namespace longhaul::cli {
namespace {

// A basic string of TOML. Control characters are never intended and are omitted.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) result += c;
  }
  return result + "\"";
}

std::string list(const std::vector<std::string>& texts) {
  std::string result = "[";
  for (const std::string& text : texts) result += (result.size() > 1 ? ", " : "") + quoted(text);
  return result + "]";
}

std::string joined(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "" : ",") + text;
  return result;
}

// Brackets of an IPv6 address are special in a shell.
std::string for_shell(const std::string& text) {
  return text.find_first_of("[]*?") == std::string::npos ? text : "'" + text + "'";
}

}  // namespace

std::string peer_text(const NewPeer& peer) {
  std::string text = "\n[[peer]]\nname = " + quoted(peer.name) + "\n";
  if (peer.address)
    text += "address = " + quoted(*peer.address) + "\n";
  else
    text += "# no address: it connects to this site\n";
  text += "fingerprint = " + quoted(peer.fingerprint) + "\n";
  text += "networks = " + list(peer.networks) + "    # at the peer's site\n";
  text +=
      "# rate = \"50mbit\"    # rate from this site to the peer; if it is not set, the rate is measured\n";
  return text;
}

std::string configuration_text(const NewSite& site) {
  std::string text =
      "# Created by longhaul init. All keys: man longhaul.toml. After a change: longhaul check, then "
      "longhaul reload.\n";
  text += "site = " + quoted(site.name) + "\n\n[identity]\n";
  text += "certificate = " + quoted(site.name + ".crt") + "\n";
  text += "private_key = " + quoted(site.name + ".key") + "    # stays on this host\n";
  text += "\n[link]\n";
  if (site.role == Role::datacenter) text += std::string("listen = \"[::]") + kPort + "\"    # TCP and UDP\n";
  text += "allow = " + list(site.networks) + "    # networks that the peers' clients may reach here\n";
  text += "\n[intercept]    # transparent mode; without root or routing: [[forward]] or [socks] instead\n";
  text += "mode = \"tproxy\"\ninterfaces = " + list({site.interface}) + "    # towards the clients, never the WAN\n";
  text += "# fail = \"closed\"    # without a link, refuse connections instead of sending them unencrypted\n";
  if (site.peer) text += peer_text(*site.peer);
  return text;
}

std::string command_for_other_site(const NewSite& site, const std::string& own_address, const std::string& fingerprint) {
  std::string line = "longhaul init --peer " + site.name;
  if (site.role == Role::datacenter) line += " --address " + for_shell(own_address + kPort);
  line += " --fingerprint " + fingerprint;
  if (!site.networks.empty()) line += " --networks " + joined(site.networks);
  return line;
}

}  // namespace longhaul::cli
