// SPDX-License-Identifier: Apache-2.0
// Fuzzes the text form of a flow's ends: what is read is written in a form that reads back as the same flow.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "proxy/flows/tuple.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace longhaul::flows;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto tuple = parse_tuple(text);
  if (tuple.has_error()) {
    if (tuple.error().message.empty()) std::abort();
    return 0;
  }
  const auto again = parse_tuple(to_text(*tuple));
  if (again.has_error() || to_text(*again) != to_text(*tuple)) std::abort();
  if (tuple->destination.port == 0 || !matches(*again, tuple->client, tuple->destination)) std::abort();
  return 0;
}
