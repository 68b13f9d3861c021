// SPDX-License-Identifier: Apache-2.0
// The kinds of values that several keys share: names, addresses, networks, rates, fingerprints, features.
// Each fails with a sentence at the value's line. read.cc checks combinations.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// A site's or peer's name; required.
std::string name_value(const Section& section, std::string_view key, std::string_view example);
// Groups of peers; empty if the key is absent.
std::vector<std::string> group_names(const Section& section, std::string_view key, std::string_view example);
HostPort host_port(const Section& section, std::string_view key, const Text& typed, HostKind kind);
std::vector<Network> networks(const Section& section, std::string_view key);
std::vector<NamePattern> name_patterns(const Section& section, std::string_view key);
// Bits per second; 0 if the key is absent.
std::uint64_t rate(const Section& section, std::string_view key);
// A size between `least` and `most`, or 0 for none.
std::optional<std::uint64_t> size_or_none(const Section& section, std::string_view key, std::uint64_t least,
                                          std::uint64_t most);
// " Did you mean ...?" for a size with an unknown unit; empty if there is no suggestion.
std::string meant_instead(const std::string& typed_size);
// One text or a list, required; in lower case, for comparisons; each with its line.
std::vector<Text> fingerprints(const Section& section);
// The name of one of the kernel's congestion controls.
std::optional<std::string> kernel_name(const Section& section, std::string_view key,
                                       std::string_view example);
bool is_interface_name(std::string_view name);
std::vector<std::string> interfaces(const Section& section, std::string_view key);
// Name and value of each feature, checked. The preset comes first: TOML has no order, and a preset would undo
// the others.
std::vector<std::pair<std::string, std::string>> features_in(const Section& section,
                                                             const FeatureTable& modules);

}  // namespace longhaul::config
