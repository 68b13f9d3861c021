// SPDX-License-Identifier: Apache-2.0
// What is read of stored objects: the descriptions and the list of the store, and the records of the HTTP
// cache in them. Only the owner of the key could write them; a parser that trusts that is one bug away from
// trusting everybody.
#include "cache/object_file.h"
#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/http/stored_record.h"

namespace longhaul::fuzz::stored_objects_target {

FUZZ_TARGET(stored_objects) {
  Choices in(std::as_bytes(std::span(data, size)));
  const unsigned what = in.below(4);
  const Bytes rest = in.some(4096);
  http::RequestHead request{.method = "GET", .target = "/", .minor = 1, .fields = {}};
  request.fields.add({"Accept-Language", "en, de"});
  if (what == 0) {
    if (const auto label = cache::parse_label(rest)) require(label->tag.size() <= cache::kMostTagBytes);
  } else if (what == 1) {
    if (const auto list = cache::parse_list(rest)) require(list->objects.size() * 40 <= rest.size());
  } else if (what == 2) {
    (void)http::tag_fits(rest, request, in.below(2) == 1);
  } else {
    const http::Clocks clocks{.now = link::TimePoint(std::chrono::hours(1)), .wall = 1'700'000'000};
    const auto stored = http::read_stored(Slice::copy_of(rest), request, in.below(2) == 1, clocks);
    if (!stored) return 0;
    require(stored->content_bytes <= rest.size());
    // What was read is written and read as the same, as long as it is certain.
    Buffer again = http::write_stored(*stored, clocks);
    for (const Slice& piece : stored->content) append(again, piece.bytes());
    const auto reread = http::read_stored(Slice::copy_of(again), request, true, clocks);
    require(reread && reread->content_bytes == stored->content_bytes && reread->etag == stored->etag &&
            reread->lifetime <= stored->lifetime && reread->age_then >= stored->age_then);
  }
  return 0;
}

}  // namespace longhaul::fuzz::stored_objects_target
