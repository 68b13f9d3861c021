// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/stored_answer.h"

#include <algorithm>
#include <span>
#include <string>

namespace longhaul::http {

std::optional<Part> part_of(const Stored& stored, const RequestHead& request) {
  const std::string text = request.fields.value("range");
  constexpr std::string_view kUnit = "bytes=";
  const std::uint64_t all = stored.content_bytes;
  if (stored.status != 200 || request.fields.count("range") != 1 || !text.starts_with(kUnit) || all == 0)
    return std::nullopt;
  const std::string_view range = std::string_view(text).substr(kUnit.size());
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first = range.substr(0, dash), last = range.substr(dash + 1);
  const bool fits = (first.empty() || is_number(first)) && (last.empty() || is_number(last)) &&
                    !(first.empty() && last.empty()) && first.size() <= 15 && last.size() <= 15;
  if (!fits) return std::nullopt;
  const auto number = [](std::string_view digits) {
    return static_cast<std::uint64_t>(std::stoull(std::string(digits)));
  };
  if (first.empty()) {
    const std::uint64_t size = std::min(number(last), all);
    return size == 0 ? std::nullopt : std::optional(Part{all - size, size});
  }
  const std::uint64_t begin = number(first), end = last.empty() ? all - 1 : std::min(number(last), all - 1);
  return begin > end ? std::nullopt : std::optional(Part{begin, end - begin + 1});
}

ResponseHead answer_of(const Stored& stored, link::TimePoint now, const Answer& answer) {
  const auto& [not_modified, part, closes, note] = answer;
  ResponseHead head{.status = not_modified ? 304u
                              : part       ? 206u
                                           : stored.status,
                    .phrase = not_modified ? "Not Modified"
                              : part       ? "Partial Content"
                                           : stored.phrase,
                    .fields = {}};
  for (const Field& field : stored.fields.all()) {
    const bool is_left_out =
        same_name(field.name, "age") || same_name(field.name, "content-length") ||
        (not_modified && (describes_content(field.name) || same_name(field.name, "content-type")));
    if (!is_left_out) head.fields.add(field);
  }
  if (part)
    head.fields.add({"Content-Range", "bytes " + std::to_string(part->first) + '-' +
                                          std::to_string(part->first + part->size - 1) + '/' +
                                          std::to_string(stored.content_bytes)});
  if (!not_modified && stored.status != 204)
    head.fields.add({"Content-Length", std::to_string(part ? part->size : stored.content_bytes)});
  head.fields.add({"Age", std::to_string(stored.age(now))});
  head.fields.add({"Cache-Status", "longhaul;" + std::string(note)});
  if (closes) head.fields.add({"Connection", "close"});
  return head;
}

Slice answer_head(const Stored& stored, link::TimePoint now, const Answer& answer) {
  const ResponseHead head = answer_of(stored, now, answer);
  std::string text = "HTTP/1.1 " + std::to_string(head.status) + ' ' + head.phrase + "\r\n";
  for (const Field& field : head.fields.all()) text += field.name + ": " + field.value + "\r\n";
  text += "\r\n";
  return Slice::copy_of(std::as_bytes(std::span(text)));
}

}  // namespace longhaul::http
