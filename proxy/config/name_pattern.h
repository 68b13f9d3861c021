// SPDX-License-Identifier: Apache-2.0
// Host names that a [[peer]] claims: one name, every name below a domain, or every name. Pure; the side that
// connects to a name resolves it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace longhaul::config {

struct NamePattern {
  std::string name;         // in lower case, without a final dot; empty: every name
  bool subdomains = false;  // the names below `name`, at any depth, and not `name` itself
  std::string to_text() const;  // as parse_name_pattern reads it
  bool operator==(const NamePattern&) const = default;
};

// "files.corp", "*.corp" or "*". Returns nullopt for any other text: the labels of a name are 1 to 63
// letters, digits, dashes or underscores, 253 characters in all (RFC 1035 section 2.3.4); an address is not a
// name.
std::optional<NamePattern> parse_name_pattern(std::string_view text);

// Ignores case and a final dot (RFC 1034 section 3.1).
bool matches(const NamePattern& pattern, std::string_view host);

}  // namespace longhaul::config
