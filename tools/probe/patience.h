// SPDX-License-Identifier: Apache-2.0
// How long a path is asked before it is taken to be silent.
#pragma once

namespace longhaul::probe {

inline constexpr unsigned kTries = 3;       // of one question
inline constexpr unsigned kSilentHops = 4;  // in a row, after which the rest is taken to be silent too
inline constexpr unsigned kFarAway = 64;    // hops: reaches whatever can be reached

}  // namespace longhaul::probe
