// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/module_tables.h"

#include <algorithm>
#include <array>

#include "proxy/config/values.h"
#include "proxy/modules/modules.h"

namespace longhaul::config {
namespace {

constexpr std::string_view kTokenScheme = "pkcs11:";  // RFC 7512

void refuse_addresses(const Section& section, const ServerTable& table, const std::vector<Network>& allow,
                      const std::vector<ServerTable>& others) {
  for (const Network& network : table.addresses)
    if (std::ranges::none_of(allow, [&](const Network& each) {
          return contains(each, network.address) || contains(network, each.address);
        }))
      section.fail(section.line(), "addresses",
                   "has " + to_text(network) +
                       ", to which this site does not connect for its peers ([link] allow does not contain it). "
                       "This table belongs to the far side, at the server: remove it here, so that its secrets "
                       "stay there.");
  for (const ServerTable& other : others)
    for (const Network& network : table.addresses)
      if (other.name == table.name && table.names.empty() && std::ranges::find(other.addresses, network) != other.addresses.end())
        section.fail(section.line(), "addresses",
                     "has " + to_text(network) +
                         ", which another such table already has; of overlapping networks the longest prefix "
                         "applies, but two equal ones are ambiguous.");
}

ServerTable read_server(const Section& section, const modules::ServerTable& known,
                        const std::filesystem::path& folder) {
  ServerTable table{.name = std::string(known.name)};
  (void)section.required_texts("addresses", "10.10.2.2");
  table.addresses = networks(section, "addresses");
  std::string names;
  for (const std::string_view key : known.files) {
    (names += names.empty() ? "" : " or ") += key;
    const auto file = section.text(key, "/etc/longhaul/files." + std::string(key));
    if (!file) continue;
    if (file->value.starts_with(kTokenScheme) && std::ranges::find(known.held, key) != known.held.end())
      table.held.emplace_back(key, file->value);
    else
      table.files.emplace_back(key, folder / file->value);
  }
  if (table.files.empty() && table.held.empty()) section.fail(section.line(), "", "needs " + names + ".");
  for (const std::string_view key : known.public_files)
    if (const auto file = section.text(key, "/etc/longhaul/intranet." + std::string(key)))
      table.public_files.emplace_back(key, folder / file->value);
  if (known.has_names)
    for (const Text& typed : section.required_texts("names", "intranet.corp")) {
      const auto pattern = parse_name_pattern(typed.value);
      if (!pattern) section.fail(typed.line, "names", "has \"" + typed.value + "\", which is no host name.");
      if (pattern->name.empty())
        section.fail(typed.line, "names", "must not have \"*\": name the servers, or a domain as \"*.corp\".");
      table.names.push_back(*pattern);
    }
  if (known.has_clients && section.has("clients")) table.clients = networks(section, "clients");
  for (const std::string_view key : known.switches)
    if (!section.boolean(key).value_or(true)) table.off.emplace_back(key);
  for (const modules::KeyChoice& choice : known.choices)
    if (const auto word = section.choice(choice.key, choice.values)) table.chosen.emplace_back(choice.key, *word);
  // Protection is never weakened: these keys only allow a file to state that, and any other value is refused.
  for (const std::string_view key : known.kept) (void)section.choice<bool>(key, {{"keep", true}});
  return table;
}

}  // namespace

std::vector<std::string_view> module_tables() {
  std::vector<std::string_view> names;
  for (const modules::Descriptor* module : modules::descriptors()) {
    names.push_back(module->name);
    if (!module->servers.name.empty()) names.push_back(module->servers.name);
  }
  return names;
}

std::vector<ModuleSettings> read_modules(const Section& top) {
  static constexpr std::array<std::string_view, 2> kKeys{"ports", "any_port"};
  std::vector<ModuleSettings> all;
  for (const modules::Descriptor* module : modules::descriptors()) {
    ModuleSettings settings{.name = std::string(module->name), .ports = {module->ports.begin(), module->ports.end()}};
    if (const auto section = top.table(module->name, kKeys)) {
      if (section->has("ports")) settings.ports = section->ports("ports");
      settings.any_port = section->boolean("any_port").value_or(false);
      if (settings.any_port && !module->recognise)
        section->fail(section->line(), "any_port",
                      "cannot be true: this module does not recognise its protocol by the first bytes; name the "
                      "servers' ports in ports.");
      for (const ModuleSettings& other : all)
        for (const std::uint16_t port : settings.ports)
          if (std::ranges::find(other.ports, port) != other.ports.end())
            section->fail(section->line(), "ports",
                          "has " + std::to_string(port) + ", which [" + other.name + "] already has.");
    }
    all.push_back(std::move(settings));
  }
  return all;
}

std::vector<ServerTable> read_servers(const Section& top, const std::vector<Network>& allow,
                                      const std::filesystem::path& folder) {
  std::vector<ServerTable> all;
  for (const modules::Descriptor* module : modules::descriptors()) {
    const modules::ServerTable& known = module->servers;
    if (known.name.empty()) continue;
    std::vector<std::string_view> keys{"addresses"};
    keys.insert(keys.end(), known.files.begin(), known.files.end());
    keys.insert(keys.end(), known.kept.begin(), known.kept.end());
    keys.insert(keys.end(), known.switches.begin(), known.switches.end());
    keys.insert(keys.end(), known.public_files.begin(), known.public_files.end());
    for (const modules::KeyChoice& choice : known.choices) keys.push_back(choice.key);
    if (known.has_names) keys.emplace_back("names");
    if (known.has_clients) keys.emplace_back("clients");
    for (const Section& section : top.tables(known.name, keys)) {
      ServerTable table = read_server(section, known, folder);
      refuse_addresses(section, table, allow, all);
      all.push_back(std::move(table));
    }
  }
  return all;
}

}  // namespace longhaul::config
