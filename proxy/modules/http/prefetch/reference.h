// SPDX-License-Identifier: Apache-2.0
// What a reference in a page means at the page's own server (RFC 3986, section 5), as browsers resolve it. Whatever they
// would have to repair first is not resolved: a prefetch that nobody asks for is worth nothing.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace longhaul::http {

inline constexpr std::size_t kMostTargetBytes = 2048;

struct Origin {
  std::string scheme;     // "http://" or "https://"
  std::string authority;  // as Host has it, in small letters
  bool operator==(const Origin&) const = default;
};

// The target of the request for it (a path, perhaps with a query). Nothing: it is at another origin, or not plain, or reads
// like an action.
std::optional<std::string> resolve(const Origin& origin, std::string_view base_target, std::string_view reference);

// Whether a GET of this target could do something at the server: no prefetch issues it, although only what a page embeds is
// ever considered.
bool looks_like_action(std::string_view target);

}  // namespace longhaul::http
