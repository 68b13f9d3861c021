// SPDX-License-Identifier: Apache-2.0
// The halves' numbers of requests in words, as tests name them: 7_number.
#pragma once
#include "proxy/modules/twin/open_key.h"
#include "tests/proxy/link/numbers.h"

namespace longhaul {

constexpr twin::MessageNumber operator""_number(unsigned long long number) {
  return twin::MessageNumber(number);
}

}  // namespace longhaul
