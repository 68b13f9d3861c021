// SPDX-License-Identifier: Apache-2.0
// What ends a measurement, as one sentence for a person: a peer that is away, a port that is taken, a wrong
// byte. An exception and not a value, since nothing is left to decide: whoever holds the conversation tells
// it and ends.
#pragma once
#include <stdexcept>

namespace longhaul::measuring {

class Trouble : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace longhaul::measuring
