// SPDX-License-Identifier: Apache-2.0
// What ends a measurement, as one sentence for a person: a peer that is away, a port that is taken, a wrong
// byte. An exception and not a value, because there is nothing to decide: the owner of the conversation
// reports it and ends.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace longhaul::measuring {

class Trouble : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A stranger's words, fit for a terminal: printable ASCII, '?' for the rest, and not many of them.
std::string fit_to_print(std::string_view words);

}  // namespace longhaul::measuring
