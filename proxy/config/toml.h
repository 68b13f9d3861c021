// SPDX-License-Identifier: Apache-2.0
// The only include of toml++: declarations only, the implementation is compiled in toml.cc. Not used outside
// this folder.
#pragma once
#define TOML_HEADER_ONLY 0
#define TOML_ENABLE_FORMATTERS 0
// toml++ 3.3 asserts that a key begins with a valid character, just before it reports the error properly
// ("[.a]"). Input must not end the program; fuzzing with ASan replaces the assertions.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>
