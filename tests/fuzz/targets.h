// SPDX-License-Identifier: Apache-2.0
// The fuzz targets by name, where they are one program: fuzz_NAME is what NAME_fuzz.cc defines.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

using Target = int(const std::uint8_t* data, std::size_t size);

// Null: there is none of that name.
Target* target_named(std::string_view name);
