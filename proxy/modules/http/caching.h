// SPDX-License-Identifier: Apache-2.0
// The rules of RFC 9111 for a shared cache: what may be stored, until when it is fresh, for which request it
// is an answer, and what a validation changes. Where the RFC leaves a choice, this takes the safe one: a
// response without an explicit lifetime is never fresh, and no stale response is served.
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
#include "proxy/modules/http/cache_control.h"
#include "proxy/modules/http/head.h"

namespace longhaul::http {

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
  bool for_all = false;  // Directives::is_for_all()
  // Validators for a conditional request; empty if the response had none.
  std::string etag, last_modified;
  bool in_memory_only = false;  // of a flow that may store nothing on disk
  // The copy on disk, if there is one.
  struct Copy {
    link::TimePoint fresh_until{};
    std::size_t fields = 0;  // a hash
  };
  std::optional<Copy> copy;
  bool can_be_asked_about() const { return status == 200 && !(etag.empty() && last_modified.empty()); }

  Seconds age(link::TimePoint now) const;
  std::size_t memory_bytes() const;
};
using Object = std::shared_ptr<const Stored>;

// The request fields that the response's Vary names, in lower case, each once. Returns nullopt for "*", or
// for more fields than are compared per request: such a response must not answer another request.
inline constexpr std::size_t kMostVarying = 16;
std::optional<std::vector<std::string>> varies_with(const Fields& response);

// The values of those fields in a request, as they are compared.
std::vector<std::pair<std::string, std::string>> values_of(const RequestHead& request, const std::vector<std::string>& names);

// Whether the response to that request may be stored once its content is complete. `wall`: seconds since
// 1970.
bool may_store(const RequestHead& request, const ResponseHead& response, Seconds wall);
Stored to_store(const RequestHead& request, const ResponseHead& response, link::TimePoint now, Seconds wall);

// Whether a cache may answer the request at all: a GET without content that names its server, with no
// condition other than If-None-Match or If-Modified-Since.
bool may_answer(const RequestHead& request);
// The condition that is added to a request to validate a stored response (section 4.3.1), as a field and as a
// line.
Field question_field(const Stored& stored);
std::string question_about(const Stored& stored);
// Whether a condition may be added to this request: it has none of its own.
bool may_ask(const RequestHead& request);
// Whether the response was stored for a request like this one (Vary, credentials).
bool matches(const Stored& stored, const RequestHead& request);
// Only the Vary part of matches().
bool varies_alike(const Stored& stored, const RequestHead& request);
// Whether the response may answer this request without validation.
bool is_fresh_for(const Stored& stored, const RequestHead& request, link::TimePoint now);
// Whether the client has this content already (If-None-Match, otherwise If-Modified-Since), so that the
// answer is 304.
bool is_at_client(const Stored& stored, const RequestHead& request);

// Whether the field describes the content itself. A 304 does not update such fields (section 3.2), and does
// not contain them.
bool describes_content(std::string_view field);
// The stored response, updated by a 304 (section 4.3.4). Returns nullopt if the 304 does not match it.
std::optional<Stored> validated(const Stored& stored, const ResponseHead& not_modified, link::TimePoint now, Seconds wall);

}  // namespace longhaul::http
