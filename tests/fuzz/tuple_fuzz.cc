// SPDX-License-Identifier: Apache-2.0
// Fuzzes the text form of a flow's ends: what is read is written in a form that reads back as the same flow.
#include <string_view>

#include "fuzz/target.h"
#include "proxy/flows/tuple.h"

namespace longhaul::fuzz::tuple_target {

FUZZ_TARGET(tuple) {
  using namespace longhaul::flows;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto tuple = parse_tuple(text);
  if (tuple.has_error()) {
    require(!tuple.error().message.empty());
    return 0;
  }
  const auto again = parse_tuple(to_text(*tuple));
  require(!again.has_error() && to_text(*again) == to_text(*tuple));
  require(tuple->destination.port != 0 && matches(*again, tuple->client, tuple->destination));
  return 0;
}

}  // namespace longhaul::fuzz::tuple_target
