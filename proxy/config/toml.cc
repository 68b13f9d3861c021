// SPDX-License-Identifier: Apache-2.0
// Compiles toml++ in one place, so that its code is instrumented and compiled only once.
#define TOML_IMPLEMENTATION
#include "proxy/config/toml.h"
