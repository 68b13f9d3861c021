// SPDX-License-Identifier: Apache-2.0
// CLI11 is one large header; a quarter of the time to compile a program went into making it fast, for what is
// read once.
#pragma once
#pragma GCC push_options
#pragma GCC optimize("O0")
#include <CLI/CLI.hpp>
#pragma GCC pop_options
