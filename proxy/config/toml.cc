// SPDX-License-Identifier: Apache-2.0
// The one place where toml++ is compiled, so that its code is ours to instrument and costs one build only.
#define TOML_IMPLEMENTATION
#include "proxy/config/toml.h"
