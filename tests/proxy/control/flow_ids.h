// SPDX-License-Identifier: Apache-2.0
// Which flows a query for the list of flows finds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "proxy/control/http_client.h"

namespace longhaul::control {

inline std::vector<std::uint64_t> flow_ids(const RunningApi& api, const std::string& query) {
  std::vector<std::uint64_t> found;
  const auto page = get(api, "/v1/flows?" + query).json();
  for (const auto& flow : page.at("flows").as_array())
    found.push_back(flow.at("id").to_number<std::uint64_t>());
  return found;
}

}  // namespace longhaul::control
