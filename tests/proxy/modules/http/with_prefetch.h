// SPDX-License-Identifier: Apache-2.0
// The HTTP module with prefetch switched on, which is off by default.
#pragma once
#include <array>

#include "proxy/modules/http/descriptor.h"

namespace longhaul::http {

inline constexpr std::array<config::ModuleFeature, 2> kFeaturesWithPrefetch{
    {{.name = "http"}, {.name = "http.prefetch", .part_of = "http"}}};

inline const modules::Descriptor kWithPrefetch = [] {
  modules::Descriptor descriptor = kDescriptor;
  descriptor.features = kFeaturesWithPrefetch;
  return descriptor;
}();

}  // namespace longhaul::http
