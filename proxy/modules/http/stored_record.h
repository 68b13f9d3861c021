// SPDX-License-Identifier: Apache-2.0
// A stored response as bytes, and the tag that says which requests it answers. No field of a request is
// written: of the fields that a response varies with, the tag has names and one digest of their values.
//
//   tag    = flags:u8 names:u8 name:text* digest:16
//            flags: 1 for all, with or without credentials; 2 has a validator
//   record = version:u8 (1) status:u16 flags:u8
//            received:u64 wall:i64 age:i64 lifetime:i64
//            phrase:text etag:text last_modified:text
//            names:varint name:text* fields:varint [name:text value:text]*
//            content_bytes:u64 content
//            flags: 1 always validated; 2 for all
//            when it was received, by both clocks, in ns and s; how old it was then, in s
//   text   = length:varint bytes
//
// A varint is that of RFC 9000, section 16; other numbers are big-endian.
// digest = the first 16 bytes of SHA-256(name:text value:text, for each of the names).
#pragma once
#include "codecs/byte_writer.h"
#include "proxy/modules/http/caching.h"

namespace longhaul::http {

// Both clocks at one moment. The first one is steady since the system started; the second one may be set.
struct Clocks {
  link::TimePoint now{};
  Seconds wall = 0;
};

// Returns nullopt if the response must not be stored on disk, because it varies with a field that identifies
// a client, or with too many.
std::optional<Buffer> tag_of(const Stored& stored);
// Whether the tag is that of a response to requests like this one. `must_be_asked`: it needs a validator.
bool tag_fits(Bytes tag, const RequestHead& request, bool must_be_asked);

// Everything except the content.
Buffer write_stored(const Stored& stored, const Clocks& clocks);
// Returns nullopt if the record is invalid. The content is the part of `bytes` after the record. The result
// is not fresh unless it is certain that nothing has erased it since, and that both clocks have only
// advanced. Its `vary` has the values of `request`, which the tag fits.
std::optional<Stored> read_stored(const Slice& bytes, const RequestHead& request, bool is_sure, const Clocks& clocks);

}  // namespace longhaul::http
