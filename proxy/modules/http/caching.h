// SPDX-License-Identifier: Apache-2.0
// The rules of RFC 9111 for a shared cache: what may be stored, until when it is fresh, for which request it is an
// answer, and what a validation changes. Where the RFC leaves a choice, the one that can be wrong for nobody: nothing is
// fresh that does not say so, and nothing is served stale.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codecs/slice.h"
#include "proxy/link/types.h"
#include "proxy/modules/http/head.h"

namespace longhaul::http {

using Seconds = std::int64_t;

// Cache-Control (section 5.2), and Pragma where that is absent.
struct Directives {
  bool no_store = false, no_cache = false, is_private = false, is_public = false;
  std::optional<Seconds> max_age, shared_max_age, min_fresh;
};
Directives directives_of(const Fields& fields);

// A date of HTTP in seconds since 1970 (RFC 9110, section 5.6.7); nothing if it is none.
std::optional<Seconds> date_of(std::string_view text);

// A response as it is stored. Immutable: a validation makes another one, with the same content.
struct Stored {
  unsigned status = 200;
  std::string phrase;
  Fields fields;  // without those of one connection
  std::vector<Slice> content;
  std::uint64_t content_bytes = 0;
  std::vector<std::pair<std::string, std::string>> vary;  // fields of the request, in small letters, with their values
  link::TimePoint received{};
  Seconds age_then = 0, lifetime = 0;
  bool validate_always = false;
  std::string etag;  // empty: none

  Seconds age(link::TimePoint now) const;
  std::size_t memory_bytes() const;
};
using Object = std::shared_ptr<const Stored>;

// Whether the response to that request may be stored once its content is complete. `wall`: seconds since 1970.
bool may_store(const RequestHead& request, const ResponseHead& response);
Stored to_store(const RequestHead& request, const ResponseHead& response, link::TimePoint now, Seconds wall);

// Whether the request can be answered by a cache at all: a GET without content, conditions, ranges and credentials that
// names its server.
bool may_answer(const RequestHead& request);
// Whether it was stored for a request like this one (Vary).
bool matches(const Stored& stored, const RequestHead& request);
// Whether it answers this request without a question to the server.
bool is_fresh_for(const Stored& stored, const RequestHead& request, link::TimePoint now);
// The client has this content already (If-None-Match): 304 is the answer.
bool is_at_client(const Stored& stored, const RequestHead& request);

// Section 4.3.4; nothing: the 304 speaks of another content.
std::optional<Stored> validated(const Stored& stored, const ResponseHead& not_modified, link::TimePoint now, Seconds wall);

// The head of an answer from the cache. `status_note`: the value of Cache-Status (RFC 9211).
Slice answer_head(const Stored& stored, link::TimePoint now, bool not_modified, bool closes, std::string_view status_note);

}  // namespace longhaul::http
