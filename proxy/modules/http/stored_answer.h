// SPDX-License-Identifier: Apache-2.0
// Builds the answer from a stored response: 200, 206 or 304. caching.h decides whether it may answer at all.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

// A range of the content (RFC 9110, section 14.2).
struct Part {
  std::uint64_t first = 0, size = 0;
};
// The range that the client requests. Returns nullopt for several ranges, an unsatisfiable one, or a unit
// other than bytes; such requests go to the server.
std::optional<Part> part_of(const Stored& stored, const RequestHead& request);

// How the head differs from the stored one. `note`: the value of Cache-Status (RFC 9211).
struct Answer {
  bool not_modified = false;
  std::optional<Part> part;
  bool closes = false;
  std::string_view note;
};
ResponseHead answer_of(const Stored& stored, link::TimePoint now, const Answer& answer);
Slice answer_head(const Stored& stored, link::TimePoint now, const Answer& answer);  // the same as HTTP/1

}  // namespace longhaul::http
