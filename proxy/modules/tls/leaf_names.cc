// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/leaf_names.h"

#include "proxy/modules/tls/policy.h"

namespace longhaul::tls {
namespace {

// At any depth.
bool is_below(std::string_view name, std::string_view domain) {
  return name.size() > domain.size() + 1 && name.ends_with(domain) && name[name.size() - domain.size() - 1] == '.';
}

bool is_one_label_below(std::string_view name, std::string_view domain) {
  return is_below(name, domain) && name.find('.') == name.size() - domain.size() - 1;
}

}  // namespace

void add_common_names(std::string_view of_server, std::span<const config::NamePattern> listed, std::set<std::string>& names) {
  const bool is_wild = of_server.starts_with("*.");
  const std::string_view written = is_wild ? of_server.substr(2) : of_server;
  const std::string name = plain_name(written);
  // With a final dot clients would not accept it from the server.
  if (name.empty() || written.ends_with('.')) return;
  // Clients accept no wildcard for a whole top-level domain.
  if (is_wild && name.find('.') == std::string::npos) return;
  for (const config::NamePattern& pattern : listed) {
    if (!is_wild) {
      if (config::matches(pattern, name)) names.insert(name);
    } else if (!pattern.subdomains) {
      if (is_one_label_below(pattern.name, name)) names.insert(pattern.name);
    } else if (name == pattern.name || is_below(name, pattern.name)) {
      names.insert("*." + name);
    }
  }
}

}  // namespace longhaul::tls
