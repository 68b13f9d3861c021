// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/head.h"

#include <algorithm>
#include <utility>

namespace longhaul::http {
namespace {

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// RFC 9110, section 5.6.2.
bool is_token(std::string_view text) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || (small(c) >= 'a' && small(c) <= 'z') || kMarks.find(c) != std::string_view::npos;
  });
}

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

// Field values: also tab, space, and characters beyond ASCII.
bool is_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

// Takes the next line from `text`, which ends in CRLF; nullopt if it has a CR or an LF elsewhere.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  if (line.find_first_of("\r\n") != std::string_view::npos) return std::nullopt;
  text.remove_prefix(end + 2);
  return line;
}

// "HTTP/1.x"
std::optional<unsigned> minor_of(std::string_view version) {
  if (version.size() != 8 || !version.starts_with("HTTP/1.") || (version[7] != '0' && version[7] != '1')) return std::nullopt;
  return static_cast<unsigned>(version[7] - '0');
}

bool read_fields(std::string_view text, Fields& fields) {
  for (;;) {
    const auto line = take_line(text);
    if (!line) return false;
    if (line->empty()) return text.empty();
    const std::size_t colon = line->find(':');
    if (colon == std::string_view::npos || fields.all().size() == kMostFields) return false;
    const std::string_view name = line->substr(0, colon);  // a folded line begins with white space
    const std::string_view value = trimmed(line->substr(colon + 1));
    if (!is_token(name) || !is_value(value)) return false;
    fields.add({std::string(name), std::string(value)});
  }
}

// Returns nullopt if there is no length, or none that all programs would read alike.
std::optional<std::uint64_t> length_of(const Fields& fields) {
  if (fields.count("content-length") != 1) return std::nullopt;
  const std::string value = fields.value("content-length");
  if (value.empty() || value.size() > 18 || !std::ranges::all_of(value, is_digit)) return std::nullopt;
  std::uint64_t length = 0;
  for (const char c : value) length = length * 10 + static_cast<std::uint64_t>(c - '0');
  return length;
}

std::optional<Framing> framing_in(const Fields& fields, unsigned minor, Framing without) {
  const bool has_length = fields.has("content-length"), has_coding = fields.has("transfer-encoding");
  if (has_coding) {
    const bool plain = minor == 1 && !has_length && fields.count("transfer-encoding") == 1 &&
                       same_name(fields.value("transfer-encoding"), "chunked");
    if (!plain) return std::nullopt;
    return Framing{.kind = Framing::Kind::chunked};
  }
  if (!has_length) return without;
  const auto length = length_of(fields);
  if (!length) return std::nullopt;
  return Framing{.kind = *length == 0 ? Framing::Kind::none : Framing::Kind::length, .length = *length};
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return small(x) == small(y); });
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), small);
  return result;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> members(std::string_view list) {
  std::vector<std::string_view> all;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '"') quoted = !quoted;
    if (at < list.size() && quoted && list[at] == '\\') {
      ++at;
      continue;
    }
    if (at < list.size() && (list[at] != ',' || quoted)) continue;
    if (const auto member = trimmed(list.substr(begin, at - begin)); !member.empty()) all.push_back(member);
    begin = at + 1;
  }
  return all;
}

bool Fields::has(std::string_view name) const { return count(name) != 0; }

std::size_t Fields::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(all_, [&](const Field& f) { return same_name(f.name, name); }));
}

std::string Fields::value(std::string_view name) const {
  std::string joined;
  bool is_first = true;
  for (const Field& field : all_) {
    if (!same_name(field.name, name)) continue;
    if (!std::exchange(is_first, false)) joined += ", ";
    joined += field.value;
  }
  return joined;
}

bool Fields::lists(std::string_view name, std::string_view member) const {
  const std::string list = value(name);
  return std::ranges::any_of(members(list), [&](std::string_view each) { return same_name(each, member); });
}

std::size_t memory_bytes(const RequestHead& request) {
  std::size_t bytes = sizeof request + request.target.size();
  for (const Field& field : request.fields.all())
    bytes += sizeof field + field.name.size() + field.value.size();
  return bytes;
}

std::size_t head_size(Bytes bytes) {
  const std::size_t end = text_of(bytes).find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

std::optional<RequestHead> read_request(Bytes head) {
  std::string_view text = text_of(head);
  const auto line = take_line(text);
  if (!line) return std::nullopt;
  const std::size_t first = line->find(' '), last = line->rfind(' ');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const auto minor = minor_of(line->substr(last + 1));
  RequestHead request{.method = std::string(line->substr(0, first)),
                      .target = std::string(line->substr(first + 1, last - first - 1)),
                      .minor = minor.value_or(0),
                      .fields = {}};
  const bool fits = minor && is_token(request.method) && !request.target.empty() && is_visible(request.target) &&
                    read_fields(text, request.fields) && request.fields.count("host") <= 1;
  if (!fits) return std::nullopt;
  return request;
}

std::optional<ResponseHead> read_response(Bytes head) {
  std::string_view text = text_of(head);
  const auto line = take_line(text);
  if (!line || line->size() < 12) return std::nullopt;
  const auto minor = minor_of(line->substr(0, 8));
  const std::string_view digits = line->substr(9, 3);
  const bool has_phrase = line->size() > 12;
  if (!minor || (*line)[8] != ' ' || !std::ranges::all_of(digits, is_digit) || digits[0] == '0' ||
      (has_phrase && ((*line)[12] != ' ' || !is_value(line->substr(13)))))
    return std::nullopt;
  ResponseHead response{.minor = *minor,
                        .status = static_cast<unsigned>((digits[0] - '0') * 100 + (digits[1] - '0') * 10 + digits[2] - '0'),
                        .phrase = has_phrase ? std::string(line->substr(13)) : std::string(),
                        .fields = {}};
  if (!read_fields(text, response.fields)) return std::nullopt;
  return response;
}

std::optional<Framing> framing_of(const RequestHead& request) {
  return framing_in(request.fields, request.minor, {.kind = Framing::Kind::none});
}

std::optional<Framing> framing_of(const ResponseHead& response, std::string_view request_method) {
  const bool bodiless = request_method == "HEAD" || response.status < 200 || response.status == 204 || response.status == 304;
  const auto framing = framing_in(response.fields, response.minor, {.kind = Framing::Kind::until_close});
  if (framing && bodiless) return Framing{};
  return framing;
}

bool closes(const Fields& fields, unsigned minor) {
  return fields.lists("connection", "close") || (minor == 0 && !fields.lists("connection", "keep-alive"));
}

}  // namespace longhaul::http
