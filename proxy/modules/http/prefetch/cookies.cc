// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/cookies.h"

#include <algorithm>

namespace longhaul::http {
namespace {

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    parts.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string_view name_of(std::string_view cookie) { return trimmed(cookie.substr(0, cookie.find('='))); }

// As browsers send it: without white space around the name and the value.
std::string pair_of(std::string_view cookie) {
  return std::string(name_of(cookie)) + '=' + std::string(trimmed(cookie.substr(cookie.find('=') + 1)));
}

enum class Change : std::uint8_t { set, removed, unclear };

// The effect of the attributes for all paths of the server.
Change change_of(const std::vector<std::string_view>& parts, bool is_secure, Seconds wall) {
  bool is_for_all = false;
  std::optional<bool> lives, expires_later;
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    const std::string_view name = name_of(*part);
    const std::size_t equals = part->find('=');
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : trimmed(part->substr(equals + 1));
    if (same_name(name, "path")) {
      is_for_all = value == "/";
    } else if (same_name(name, "max-age")) {
      const bool is_number = !value.empty() && value.size() < 12 && std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
      if (!is_number && !value.starts_with('-')) return Change::unclear;
      lives = is_number && value.find_first_not_of('0') != std::string_view::npos;
    } else if (same_name(name, "expires")) {
      const auto until = date_of(value);
      if (!until) return Change::unclear;
      expires_later = *until > wall;
    } else if (same_name(name, "secure")) {
      if (!is_secure) return Change::unclear;
    } else if (!same_name(name, "httponly") && !same_name(name, "samesite") && !name.empty()) {
      return Change::unclear;  // Domain, Partitioned, and unknown attributes
    }
  }
  if (!is_for_all) return Change::unclear;
  return lives.value_or(expires_later.value_or(true)) ? Change::set : Change::removed;
}

}  // namespace

std::string cookies_of(const Fields& request) {
  std::string all;
  for (const Field& field : request.all())
    if (same_name(field.name, "cookie")) (all += all.empty() ? "" : "; ") += field.value;
  return all;
}

std::size_t cookie_bytes(const Fields& request) {
  std::size_t bytes = 0;
  for (const Field& field : request.all())
    if (same_name(field.name, "cookie")) bytes += field.value.size();
  return bytes;
}

std::optional<std::vector<std::string>> cookies_after(const RequestHead& page, const ResponseHead& response, bool is_secure,
                                                      Seconds wall) {
  if (cookie_bytes(page.fields) > kMostCookieBytes) return std::nullopt;
  std::vector<std::string> cookies;
  const std::string before = cookies_of(page.fields);
  for (const std::string_view each : parts_of(before)) cookies.emplace_back(each);
  if (cookies.size() > kMostCookies) return std::nullopt;
  for (const Field& field : response.fields.all()) {
    if (!same_name(field.name, "set-cookie")) continue;
    const auto parts = parts_of(field.value);
    const bool is_plain = !parts.empty() && parts[0].find('=') != std::string_view::npos && !name_of(parts[0]).empty() &&
                          !name_of(parts[0]).starts_with("__");
    const Change change = is_plain ? change_of(parts, is_secure, wall) : Change::unclear;
    if (change == Change::unclear) return std::nullopt;
    const auto same = std::ranges::find_if(cookies, [&](const std::string& each) { return name_of(each) == name_of(parts[0]); });
    if (change == Change::removed) {
      if (same != cookies.end()) cookies.erase(same);
    } else if (same != cookies.end()) {
      *same = pair_of(parts[0]);  // a cookie that is set again keeps its place
    } else {
      cookies.push_back(pair_of(parts[0]));
    }
  }
  std::size_t bytes = 0;
  for (const std::string& each : cookies) bytes += each.size();
  if (cookies.size() > kMostCookies || bytes > kMostCookieBytes) return std::nullopt;
  return cookies;
}

}  // namespace longhaul::http
