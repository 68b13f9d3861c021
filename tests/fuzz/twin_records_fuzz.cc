// SPDX-License-Identifier: Apache-2.0
// Fuzzes what the halves of a module hear of each other's host: records of any kind and size, put together as
// an obvious model does it.
#include "proxy/modules/twin_records.h"

#include "fuzz/choices.h"
#include "fuzz/target.h"

namespace longhaul::fuzz::twin_records_target {
using namespace longhaul::modules;

FUZZ_TARGET(twin_records) {
  fuzz::Choices choices({reinterpret_cast<const std::byte*>(data), size});
  TwinReader reader;
  Buffer model;
  while (!choices.empty()) {
    const std::size_t length = choices.byte(), factor = 1 + choices.below(4) * 99;
    Buffer body(length * factor, std::byte(choices.byte()));
    paid_bytes += body.size();
    if (!body.empty()) body[0] = std::byte(choices.below(5));
    const auto said = reader.feed(Slice::copy_of(body));
    const bool piece = !body.empty() && body[0] <= std::byte{1};
    if (piece) append(model, Bytes(body).subspan(1));
    if (body.empty() || (piece && model.size() > kMaxTwinMessage)) {
      fuzz::require(!said);
      break;  // the flow ends
    }
    fuzz::require(said.has_value());
    const auto kind = std::to_integer<unsigned>(body[0]);
    fuzz::require(said->has_value() == (kind == 0 || kind == 2));
    if (!*said) continue;
    fuzz::require((*said)->aside == (kind == 2));
    fuzz::require((*said)->message.has_value() == (kind == 0));
    if (kind != 0) continue;
    fuzz::require(std::ranges::equal((*said)->message->bytes(), model));
    model.clear();
  }
  return 0;
}

}  // namespace longhaul::fuzz::twin_records_target
