// SPDX-License-Identifier: Apache-2.0
// The one place where Catch2's main is compiled.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#include "codecs/keyed_hash.h"

// A seed gives the same run again only if tables have the same order.
[[maybe_unused]] static const bool kSecretIsFixed = [] {
  longhaul::HashSecret::of_process() = longhaul::HashSecret::from(1);
  return true;
}();
