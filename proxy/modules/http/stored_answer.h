// SPDX-License-Identifier: Apache-2.0
// The answer that a stored response makes: all of it, one part, or that the client has it already. Whether it
// may answer at all is decided in caching.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

// The one part that the client asks for (RFC 9110, section 14.2).
struct Part {
  std::uint64_t first = 0, size = 0;
};
// Nothing: several, none that there is, or in another unit; the server answers that.
std::optional<Part> part_of(const Stored& stored, const RequestHead& request);

// The head of an answer from the cache. `note`: what Cache-Status says (RFC 9211).
struct Answer {
  bool not_modified = false;
  std::optional<Part> part;
  bool closes = false;
  std::string_view note;
};
ResponseHead answer_of(const Stored& stored, link::TimePoint now, const Answer& answer);
Slice answer_head(const Stored& stored, link::TimePoint now, const Answer& answer);  // the same as HTTP/1

}  // namespace longhaul::http
