// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/http_base.h"

#include <algorithm>

namespace longhaul::config {

TextResult<HttpBase> parse_http_base(std::string_view text) {
  constexpr std::string_view kPlain = "http://", kTls = "https://";
  const bool tls = text.starts_with(kTls);
  if (!tls && !text.starts_with(kPlain)) return TextError{"does not begin with http:// or https://"};
  text.remove_prefix(tls ? kTls.size() : kPlain.size());
  const auto slash = std::min(text.find('/'), text.size());
  const auto at = parse_host_port(text.substr(0, slash), HostKind::address_or_name);
  if (!at) return at.error();
  std::string_view path = text.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  // RFC 3986: the characters of a path, except escapes.
  const bool is_plain = std::ranges::all_of(path, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/-._~!$&'()*+,;=:@").find(c) != std::string_view::npos;
  });
  if (!is_plain || path.size() > 200) return TextError{"has a path that is too long, or has characters other than letters, digits and /-._~"};
  return HttpBase{*at, std::string(path), tls};
}

std::string HttpBase::to_text() const { return (tls ? "https://" : "http://") + config::to_text(at) + path; }

}  // namespace longhaul::config
