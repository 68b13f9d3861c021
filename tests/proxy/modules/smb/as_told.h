// SPDX-License-Identifier: Apache-2.0
// The surroundings that a host would report to an SMB module.
#pragma once
#include "proxy/modules/smb/features.h"

namespace longhaul::smb {

inline modules::Surroundings as_told(const Surroundings& surroundings) {
  static const config::FeatureTable table{kFeatures};
  config::ModuleFeatures features(table);
  const Features& of = surroundings.features;
  features.set("smb", 1);
  features.set("smb.read_ahead", of.read_ahead);
  features.set("smb.write_behind", of.write_behind);
  features.set("smb.write_behind_cached", of.write_behind_cached);
  features.set("smb.metadata", static_cast<std::uint8_t>(!of.metadata ? 0 : of.metadata_relaxed ? 2 : 1));
  modules::Surroundings all{.line_bytes_per_second = surroundings.line_bytes_per_second,
                            .round_trip = surroundings.round_trip,
                            .stream_room = surroundings.stream_room,
                            .contact = surroundings.contact};
  all.features.modules = features;
  return all;
}

}  // namespace longhaul::smb
