// SPDX-License-Identifier: Apache-2.0
// Suggests a known word for an unknown one.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace longhaul::config {

// The known word most similar to `word`, or empty if none is similar enough for a typing mistake.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// " Did you mean X?" if a known word is similar, else " Known names: A, B and C." and `otherwise`.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known,
                         std::string_view otherwise = {});

}  // namespace longhaul::config
