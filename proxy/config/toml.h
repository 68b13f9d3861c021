// SPDX-License-Identifier: Apache-2.0
// The one door to toml++: declarations only, its implementation is compiled in toml.cc. Nothing outside this
// folder sees it.
#pragma once
#define TOML_HEADER_ONLY 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
