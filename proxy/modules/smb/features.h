// SPDX-License-Identifier: Apache-2.0
// The features of SMB: the rows of its descriptor, and their values for the halves, with the surroundings of
// a half.
#pragma once
#include <array>
#include <cstdint>

#include "proxy/modules/module.h"

namespace longhaul::smb {

inline constexpr std::array<std::string_view, 3> kMetadataValues{"false", "strict", "relaxed"};
inline constexpr std::array<config::ModuleFeature, 5> kFeatures{{
    {.name = "smb"},
    {.name = "smb.read_ahead", .part_of = "smb"},
    {.name = "smb.write_behind", .part_of = "smb"},
    // May lose data that a program believes to be written: no preset enables it.
    {.name = "smb.write_behind_cached", .standard = 0, .part_of = "smb.write_behind"},
    {.name = "smb.metadata", .values = kMetadataValues, .part_of = "smb"},
}};

struct Features {
  bool read_ahead = true;
  bool write_behind = true;
  bool write_behind_cached = false;
  bool metadata = true;
  bool metadata_relaxed = false;  // names and attributes are cached for a time, without watching directories

  bool operator==(const Features&) const = default;
};

inline Features features_of(const config::ModuleFeatures& in_force) {
  const std::uint8_t metadata = in_force.value("smb.metadata");
  return {.read_ahead = in_force.value("smb.read_ahead") != 0,
          .write_behind = in_force.value("smb.write_behind") != 0,
          .write_behind_cached = in_force.value("smb.write_behind_cached") != 0,
          .metadata = metadata != 0,
          .metadata_relaxed = metadata == 2};
}

// modules::Surroundings, with the features parsed.
struct Surroundings {
  std::uint64_t line_bytes_per_second = 0;
  modules::Duration round_trip{0};
  std::size_t stream_room = 0;
  Features features;
  link::Contact contact{};

  Surroundings() = default;
  explicit Surroundings(const modules::Surroundings& told)
      : line_bytes_per_second(told.line_bytes_per_second),
        round_trip(told.round_trip),
        stream_room(told.stream_room),
        features(features_of(told.features.modules)),
        contact(told.contact) {}
};

}  // namespace longhaul::smb
