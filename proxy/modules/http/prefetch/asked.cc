// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/asked.h"

#include <algorithm>
#include <array>
#include <map>

#include "proxy/modules/http/prefetch/cookies.h"

namespace longhaul::http {
namespace {

// Fields that differ in every browser between the request for a page and those for its objects, and that
// neither identify the client nor are conditions. A server whose response depends on one of these lists it in
// Vary.
constexpr std::array<std::string_view, 13> kOfEach{
    "accept",         "referer",        "priority",       "connection", "keep-alive", "upgrade-insecure-requests", "purpose",
    "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user", "te",     "sec-purpose"};
// Fields that apply to one request only and are not copied to a prefetch.
constexpr std::array<std::string_view, 10> kOfOne{"cache-control", "pragma",   "if-none-match", "if-modified-since", "if-match",
                                                  "if-range",      "if-unmodified-since", "range", "content-length", "expect"};

bool is_listed(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::any_of(names, [&](std::string_view each) { return same_name(each, name); });
}

// The schemes of RFC 4559 and similar ones authenticate the connection, not the request.
bool names_connection_scheme(std::string_view value) {
  for (const std::string_view scheme : {"negotiate", "ntlm", "kerberos"}) {
    const std::string_view begin = value.substr(0, scheme.size());
    if (same_name(begin, scheme)) return true;
  }
  return false;
}

std::size_t fields_besides_cookies(const RequestHead& request) {
  return request.fields.all().size() - request.fields.count("cookie");
}

// What has to be the same in the request of a prefetch and in the browser's: the values of each name, joined.
std::map<std::string, std::string> compared(const Fields& fields) {
  std::map<std::string, std::string> values;
  for (const Field& field : fields.all()) {
    if (is_listed(kOfEach, field.name) || same_name(field.name, "cookie")) continue;
    const auto [place, is_first] = values.try_emplace(lower(field.name));
    (place->second += is_first ? "" : ", ") += field.value;
  }
  return values;
}

std::string lines_of(const Fields& fields) {
  std::string text;
  for (const Field& field : fields.all()) text += field.name + ": " + field.value + "\r\n";
  return text + "\r\n";
}

}  // namespace

bool may_lead_to_prefetch(const RequestHead& page) {
  if (fields_besides_cookies(page) > kMostPageFields) return false;
  const Directives asks = directives_of(page.fields);
  const std::string dest = page.fields.value("sec-fetch-dest"), accept = page.fields.value("accept");
  const bool is_shown = dest.empty() || same_name(dest, "document") || same_name(dest, "iframe") || same_name(dest, "frame");
  const bool is_first = !page.fields.has("if-none-match") && !page.fields.has("if-modified-since");
  const std::string connection = page.fields.value("connection");
  const bool is_kept = std::ranges::all_of(members(connection), [](std::string_view each) { return same_name(each, "keep-alive"); });
  return page.method == "GET" && page.minor == 1 && is_kept && page.target.starts_with('/') && page.fields.count("host") == 1 && is_shown &&
         is_first && lower(accept).find("text/html") != std::string::npos && !page.fields.has("range") &&
         !page.fields.has("x-requested-with") && !asks.no_cache && !asks.no_store && !page.fields.has("expect");
}

bool is_page_to_read(const ResponseHead& response) {
  const std::string type = lower(response.fields.value("content-type"));
  const std::string coding = lower(response.fields.value("content-encoding"));
  const bool is_html = type.starts_with("text/html") || type.starts_with("application/xhtml+xml");
  return response.status == 200 && response.minor == 1 && is_html && response.fields.count("content-encoding") <= 1 &&
         (coding.empty() || coding == "gzip" || coding == "identity");
}

bool authenticates_connection(const Fields& fields) {
  static constexpr std::array<std::string_view, 4> kNames{"authorization", "proxy-authorization", "www-authenticate",
                                                         "proxy-authenticate"};
  return std::ranges::any_of(fields.all(), [](const Field& field) {
    if (!is_listed(kNames, field.name)) return false;
    const auto all = members(field.value);
    return std::ranges::any_of(all, names_connection_scheme);
  });
}

std::optional<RequestHead> asked_for_page(const RequestHead& page, const ResponseHead& response, std::string_view scheme,
                                          Seconds wall) {
  const bool sets_cookies = response.fields.has("set-cookie");
  const auto cookies = cookies_after(page, response, scheme == "https://", wall);
  if (!cookies) return std::nullopt;
  RequestHead asked{.method = "GET", .target = page.target, .minor = 1, .fields = {}};
  for (const Field& field : page.fields.all()) {
    const bool is_said_anew = sets_cookies && same_name(field.name, "cookie");
    if (!is_said_anew && !is_listed(kOfEach, field.name) && !is_listed(kOfOne, field.name)) asked.fields.add(field);
  }
  if (sets_cookies && !cookies->empty()) {
    std::string line;
    for (const std::string& each : *cookies) (line += line.empty() ? "" : "; ") += each;
    asked.fields.add({"Cookie", std::move(line)});
  }
  asked.fields.add({"Accept", "*/*"});
  asked.fields.add({"Referer", std::string(scheme) + page.fields.value("host") + page.target});
  if (head_text(asked).size() > kMostAskedBytes) return std::nullopt;
  return asked;
}

bool is_same_asked(const RequestHead& asked, const RequestHead& request) {
  return request.method == "GET" && fields_besides_cookies(request) <= 2 * kMostPageFields &&
         cookie_bytes(request.fields) <= kMostCookieBytes &&
         cookies_of(asked.fields) == cookies_of(request.fields) &&
         compared(asked.fields) == compared(request.fields);
}

std::string head_text(const RequestHead& request) {
  return request.method + ' ' + request.target + " HTTP/1.1\r\n" + lines_of(request.fields);
}

std::string head_text(const ResponseHead& response) {
  return "HTTP/1.1 " + std::to_string(response.status) + ' ' + response.phrase + "\r\n" + lines_of(response.fields);
}

}  // namespace longhaul::http
