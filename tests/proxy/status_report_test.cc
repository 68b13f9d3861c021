// SPDX-License-Identifier: Apache-2.0
#include "proxy/status_report.h"

#include <catch2/catch.hpp>

using namespace longhaul;

TEST_CASE("each share of the memory is reported with its own limit") {
  const MemoryPlan plan{.credit_bytes = 100, .retained_bytes = 200, .module_bytes = 300, .ahead_bytes = 400};
  control::Status status;
  status.module_bytes = 3;
  status.ahead_bytes = 4;
  status.dictionary_bytes = 5;
  status.dictionary_limit_bytes = 500;
  const auto parts = memory_parts(plan, status, 1, 2);
  const std::vector<std::string_view> names{"credit", "retained", "modules", "ahead", "dictionaries"};
  REQUIRE(parts.size() == names.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CAPTURE(i);
    CHECK(parts[i].name == names[i]);
    CHECK(parts[i].bytes == i + 1);
    CHECK(parts[i].limit_bytes == 100 * (i + 1));
  }
}
