// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP/1 message (RFC 9112, sections 2 to 6): its first line and fields, and the framing of
// its body. A head that two programs could read differently is an error, so that nothing in it can be hidden
// from the cache.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codecs/bytes.h"

namespace longhaul::http {

inline constexpr std::size_t kMostHeadBytes = 64 * 1024, kMostFields = 256;

struct Field {
  std::string name;   // as sent
  std::string value;  // without surrounding white space
  bool never_indexed = false;  // HTTP/2: no proxy may index it (RFC 7541, section 7.1.3)
};

// ASCII only, like field names.
bool same_name(std::string_view a, std::string_view b);
std::string lower(std::string_view text);
std::string_view trimmed(std::string_view text);
// The members of a comma-separated list, without white space and empty members; commas in quotes do not
// separate members.
std::vector<std::string_view> members(std::string_view list);

class Fields {
 public:
  void add(Field field) { all_.push_back(std::move(field)); }
  const std::vector<Field>& all() const { return all_; }

  bool has(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  // All values with that name, joined with ", " (RFC 9110, section 5.3); empty if there is none.
  std::string value(std::string_view name) const;
  bool lists(std::string_view name, std::string_view member) const;  // case-insensitive

 private:
  std::vector<Field> all_;
};

struct RequestHead {
  std::string method, target;
  unsigned minor = 1;  // of HTTP/1.x
  Fields fields;
};

// Including the struct itself.
std::size_t memory_bytes(const RequestHead& request);

struct ResponseHead {
  unsigned minor = 1, status = 0;
  std::string phrase;
  Fields fields;
};

// The size of the head with its empty line; 0 if it is incomplete.
std::size_t head_size(Bytes bytes);
// Parse a whole head. Return nullopt if it is not exactly what the RFC allows.
std::optional<RequestHead> read_request(Bytes head);
std::optional<ResponseHead> read_response(Bytes head);

// How the end of a body is determined (RFC 9112, section 6.3).
struct Framing {
  enum class Kind : std::uint8_t { none, length, chunked, until_close } kind = Kind::none;
  std::uint64_t length = 0;
};
std::optional<Framing> framing_of(const RequestHead& request);
std::optional<Framing> framing_of(const ResponseHead& response, std::string_view request_method);

// Whether the connection ends after this message.
bool closes(const Fields& fields, unsigned minor);

}  // namespace longhaul::http
