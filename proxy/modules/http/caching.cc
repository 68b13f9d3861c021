// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/caching.h"

#include <algorithm>
#include <array>

namespace longhaul::http {
namespace {

constexpr std::array<std::string_view, 9> kOfConnection{"connection", "keep-alive", "proxy-authenticate", "proxy-connection",
                                                        "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"};

constexpr std::array<std::string_view, 4> kOfContent{"content-length", "content-encoding", "content-md5", "content-range"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::any_of(names, [&](std::string_view each) { return same_name(each, name); });
}

// Exactly one Host, without white space and control characters, as in names of servers.
bool names_server(const RequestHead& request) {
  const std::string host = request.fields.value("host");
  return request.fields.count("host") == 1 &&
         std::ranges::all_of(host, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != '\x7f'; });
}

Fields stored_fields(const Fields& fields) {
  const std::string listed = fields.value("connection");
  const auto of_connection = members(listed);
  Fields kept;
  for (const Field& field : fields.all())
    if (!is_among(kOfConnection, field.name) && !is_among(of_connection, field.name)) kept.add(field);
  return kept;
}

Seconds age_of(const Fields& fields, Seconds wall) {
  Seconds age = 0;
  if (fields.has("age")) {
    const std::string text = fields.value("age");
    if (!is_number(text)) return kMostSeconds;  // unknown: it is not fresh
    age = seconds_of(text);
  }
  // The transit time is ignored: except on the longest lines, the pair has carried the response in less than
  // the rounding.
  if (const auto date = date_of(fields.value("date"))) age = std::max(age, wall - *date);
  return std::max<Seconds>(age, 0);
}

Seconds lifetime_of(const Fields& fields, const Directives& says, Seconds wall) {
  if (says.shared_max_age) return *says.shared_max_age;
  if (says.max_age) return *says.max_age;
  if (fields.count("expires") != 1) return 0;
  const auto expires = date_of(fields.value("expires"));
  const Seconds made = date_of(fields.value("date")).value_or(wall);
  return expires ? std::clamp<Seconds>(*expires - made, 0, kMostSeconds) : 0;
}

// The value of a field that a response varies with; white space between the members of a list is ignored.
std::string varying(const RequestHead& request, std::string_view name) {
  const std::string text = request.fields.value(name);
  std::string value;
  for (const std::string_view member : members(text)) (value += value.empty() ? "" : ", ") += member;
  return value;
}

bool is_etag(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  return text.size() >= 2 && text.front() == '"' && text.back() == '"' &&
         text.substr(1, text.size() - 2).find('"') == std::string_view::npos;
}

std::string etag_of(const Fields& fields) {
  const std::string etag = fields.count("etag") == 1 ? fields.value("etag") : std::string();
  return is_etag(etag) ? etag : std::string();
}

// A date distinguishes two versions only if the response was made well after it: the file may change twice in
// one second (RFC 9110, section 8.8.2.2; the minute is from RFC 7232).
std::string last_modified_of(const Fields& fields) {
  constexpr Seconds kLeast = 60;
  if (fields.count("last-modified") != 1 || fields.count("date") != 1) return {};
  const auto changed = date_of(fields.value("last-modified")), made = date_of(fields.value("date"));
  return changed && made && *made - *changed >= kLeast ? fields.value("last-modified") : std::string();
}

void set_times(Stored& stored, link::TimePoint now, Seconds wall) {
  const Directives says = directives_of(stored.fields);
  stored.received = now;
  stored.age_then = age_of(stored.fields, wall);
  stored.lifetime = lifetime_of(stored.fields, says, wall);
  stored.validate_always = says.no_cache;
  stored.for_all = says.is_for_all();
  stored.etag = etag_of(stored.fields);
  stored.last_modified = last_modified_of(stored.fields);
}

// For the weak comparison of RFC 9110, section 8.8.3.2.
std::string_view opaque(std::string_view etag) { return etag.starts_with("W/") ? etag.substr(2) : etag; }

}  // namespace

bool describes_content(std::string_view field) { return is_among(kOfContent, field); }

Seconds Stored::age(link::TimePoint now) const {
  return age_then + std::chrono::duration_cast<std::chrono::seconds>(now - received).count();
}

std::size_t Stored::memory_bytes() const {
  std::size_t bytes = sizeof(Stored) + phrase.size() + etag.size() + last_modified.size() + content.size() * (sizeof(Slice) + 32) +
                      static_cast<std::size_t>(content_bytes);
  for (const Field& field : fields.all()) bytes += sizeof field + field.name.size() + field.value.size();
  for (const auto& [name, value] : vary) bytes += 2 * sizeof name + name.size() + value.size();
  return bytes;
}

std::optional<std::vector<std::string>> varies_with(const Fields& response) {
  std::vector<std::string> names;
  const std::string vary = response.value("vary");
  for (const std::string_view member : members(vary)) {
    std::string name = lower(member);
    if (std::ranges::find(names, name) != names.end()) continue;
    if (name == "*" || names.size() == kMostVarying) return std::nullopt;
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::pair<std::string, std::string>> values_of(const RequestHead& request, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const std::string& name : names) values.emplace_back(name, varying(request, name));
  return values;
}

bool may_answer(const RequestHead& request) {
  static constexpr std::array<std::string_view, 4> kAsksMore{"if-match", "if-unmodified-since", "if-range", "upgrade"};
  const bool plain = std::ranges::none_of(kAsksMore, [&](std::string_view name) { return request.fields.has(name); });
  const auto framing = framing_of(request);
  return plain && request.method == "GET" && request.target.starts_with('/') && names_server(request) &&
         framing && framing->kind == Framing::Kind::none && !directives_of(request.fields).no_store;
}

bool may_store(const RequestHead& request, const ResponseHead& response, Seconds wall) {
  const Directives says = directives_of(response.fields);
  const bool asks_little = request.method == "GET" && request.target.starts_with('/') && names_server(request) &&
                           (!request.fields.has("authorization") || says.is_for_all()) &&
                           !request.fields.has("range") &&
                           !directives_of(request.fields).no_store;
  const bool forbids = says.no_store || says.is_private || response.fields.has("set-cookie") ||
                       !varies_with(response.fields) || response.minor == 0 ||
                       response.fields.has("surrogate-control");  // rules for caches like this one that it does not know
  if (!asks_little || forbids) return false;
  const bool says_how_long = lifetime_of(response.fields, says, wall) > 0;
  if (response.status == 200)
    return says_how_long || !etag_of(response.fields).empty() || !last_modified_of(response.fields).empty();
  const bool is_usual = response.status > 200 && response.status < 512;
  return says_how_long && response.status > 200 && response.status != 206 && response.status != 304 &&
         (is_usual || !says.must_understand);
}

Stored to_store(const RequestHead& request, const ResponseHead& response, link::TimePoint now, Seconds wall) {
  Stored stored;
  stored.status = response.status;
  stored.phrase = response.phrase;
  stored.fields = stored_fields(response.fields);
  if (const auto names = varies_with(response.fields)) stored.vary = values_of(request, *names);
  set_times(stored, now, wall);
  return stored;
}

Field question_field(const Stored& stored) {
  return stored.etag.empty() ? Field{"If-Modified-Since", stored.last_modified} : Field{"If-None-Match", stored.etag};
}

std::string question_about(const Stored& stored) {
  const Field field = question_field(stored);
  return field.name + ": " + field.value + "\r\n";
}

bool may_ask(const RequestHead& request) {
  static constexpr std::array<std::string_view, 4> kOwn{"if-none-match", "if-modified-since", "range", "authorization"};
  return std::ranges::none_of(kOwn, [&](std::string_view name) { return request.fields.has(name); });
}

bool matches(const Stored& stored, const RequestHead& request) {
  if (request.fields.has("authorization") && !stored.for_all) return false;
  return varies_alike(stored, request);
}

bool varies_alike(const Stored& stored, const RequestHead& request) {
  return std::ranges::all_of(stored.vary, [&](const auto& each) { return varying(request, each.first) == each.second; });
}

bool is_fresh_for(const Stored& stored, const RequestHead& request, link::TimePoint now) {
  const Directives asks = directives_of(request.fields);
  if (stored.validate_always || asks.no_cache) return false;
  const Seconds age = stored.age(now);
  return age < stored.lifetime && (!asks.max_age || age <= *asks.max_age) &&
         (!asks.min_fresh || stored.lifetime - age >= *asks.min_fresh);
}

bool is_at_client(const Stored& stored, const RequestHead& request) {
  if (stored.status != 200) return false;
  if (!request.fields.has("if-none-match")) {
    // The tag has precedence (RFC 9110, section 13.1.3). If a response has no date, the time at which it was
    // made is used.
    const auto since = date_of(request.fields.value("if-modified-since"));
    const auto changed = date_of(stored.fields.value(stored.fields.has("last-modified") ? "last-modified" : "date"));
    return since && changed && *changed <= *since;
  }
  if (stored.etag.empty()) return false;
  const std::string tags = request.fields.value("if-none-match");
  return std::ranges::any_of(members(tags), [&](std::string_view tag) {
    return tag == "*" || opaque(tag) == opaque(stored.etag);
  });
}

std::optional<Stored> validated(const Stored& stored, const ResponseHead& not_modified, link::TimePoint now, Seconds wall) {
  if (not_modified.fields.has("etag") && opaque(not_modified.fields.value("etag")) != opaque(stored.etag)) return std::nullopt;
  const bool is_by_date = stored.etag.empty() && not_modified.fields.has("last-modified");
  if (is_by_date && not_modified.fields.value("last-modified") != stored.last_modified) return std::nullopt;
  const Fields said = stored_fields(not_modified.fields);
  Stored fresh = stored;
  fresh.fields = {};
  // A response from a cache on the way had an age; that of the validation counts now.
  for (const Field& field : stored.fields.all())
    if (!same_name(field.name, "age") && (describes_content(field.name) || !said.has(field.name)))
      fresh.fields.add(field);
  for (const Field& field : said.all())
    if (!describes_content(field.name)) fresh.fields.add(field);
  set_times(fresh, now, wall);
  if (fresh.etag.empty()) fresh.etag = stored.etag;
  // The value for the 304 is not the content's.
  fresh.last_modified = stored.last_modified;
  return fresh;
}

}  // namespace longhaul::http
