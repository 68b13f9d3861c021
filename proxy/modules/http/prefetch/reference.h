// SPDX-License-Identifier: Apache-2.0
// Resolves references of a page at the page's own server (RFC 3986, section 5) like browsers do. References
// that browsers would have to repair first are not resolved.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace longhaul::http {

inline constexpr std::size_t kMostTargetBytes = 2048;

struct Origin {
  std::string scheme;     // "http://" or "https://"
  std::string authority;  // as in Host, in lower case
  bool operator==(const Origin&) const = default;
};

// The request target for the reference (a path, perhaps with a query). Returns nullopt if it has another
// origin, is malformed, or looks like an action.
std::optional<std::string> resolve(const Origin& origin, std::string_view base_target, std::string_view reference);

// Whether a GET of this target could have an effect at the server. Prefetch never requests such a target,
// even if a page embeds it.
bool looks_like_action(std::string_view target);

}  // namespace longhaul::http
