// SPDX-License-Identifier: Apache-2.0
// A stored response as bytes, and the tag that says which requests it answers. No field of a request is written: of the fields
// that a response varies with, the tag has names and one digest of their values.
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
