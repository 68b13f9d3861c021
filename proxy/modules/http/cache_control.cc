// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/cache_control.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <string>

namespace longhaul::http {
namespace {

// The smaller value of a directive that is given twice.
void take_least(std::optional<Seconds>& into, Seconds value) { into = into ? std::min(*into, value) : value; }

}  // namespace

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Seconds seconds_of(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (!is_number(text)) return 0;
  if (text.size() > 10) return kMostSeconds;
  Seconds value = 0;
  for (const char c : text) value = value * 10 + (c - '0');
  return std::min(value, kMostSeconds);
}

Directives directives_of(const Fields& fields) {
  Directives says;
  const std::string text = fields.value("cache-control");
  for (const std::string_view member : members(text)) {
    const std::size_t equals = member.find('=');
    const std::string_view name = trimmed(member.substr(0, std::min(equals, member.size())));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : trimmed(member.substr(equals + 1));
    if (same_name(name, "no-store")) says.no_store = true;
    if (same_name(name, "no-cache")) says.no_cache = true;
    if (same_name(name, "private")) says.is_private = true;
    if (same_name(name, "public")) says.is_public = true;
    if (same_name(name, "must-understand")) says.must_understand = true;
    if (same_name(name, "must-revalidate")) says.must_revalidate = true;
    if (same_name(name, "max-age")) take_least(says.max_age, seconds_of(value));
    if (same_name(name, "s-maxage")) take_least(says.shared_max_age, seconds_of(value));
    if (same_name(name, "min-fresh")) says.min_fresh = seconds_of(value);
  }
  if (!fields.has("cache-control") && fields.lists("pragma", "no-cache")) says.no_cache = true;
  return says;
}

std::optional<Seconds> date_of(std::string_view text) {
  static constexpr std::array kForms{"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                     "%a %b %e %H:%M:%S %Y"};
  const std::string copy(text);
  for (const char* form : kForms) {
    std::tm when{};
    const char* const end = ::strptime(copy.c_str(), form, &when);
    if (end && *end == '\0') return static_cast<Seconds>(::timegm(&when));
  }
  return std::nullopt;
}

}  // namespace longhaul::http
