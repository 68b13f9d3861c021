// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/store_views.h"

#include <catch2/catch.hpp>

using namespace longhaul::control;
namespace cache = longhaul::cache;

TEST_CASE("stores that a daemon does not have are shown as null, and others with their counters") {
  CHECK(view(std::optional<cache::StoreCounters>()).is_null());
  CHECK(view(std::optional<cache::ObjectCounters>()).is_null());
  cache::StoreCounters disk;
  disk.disk_bytes = 5;
  disk.cap_bytes = 9;
  const auto shown = view(std::optional(disk));
  CHECK(shown.at("bytes").to_number<int>() == 5);
  CHECK(shown.at("limit_bytes").to_number<int>() == 9);
  cache::ObjectCounters objects;
  objects.objects = 3;
  CHECK(view(std::optional(objects)).at("objects").to_number<int>() == 3);
}

TEST_CASE("what was cleared is shown for each peer, and what became of the keys") {
  Cleared cleared{.memory_bytes = 1, .disk_bytes = 2, .object_bytes = 3};
  cleared.peers = {{.name = "reached", .disk_bytes = 4}, {.name = "silent", .disk_bytes = {}}};
  cleared.disk_key = cache::ClearedKey::destroyed;
  const auto shown = view(cleared);
  CHECK(shown.at("memory_bytes").to_number<int>() == 1);
  CHECK(shown.at("disk_bytes").to_number<int>() == 2);
  CHECK(shown.at("object_bytes").to_number<int>() == 3);
  CHECK(shown.at("disk_key").as_string() == "destroyed");
  CHECK(shown.at("object_key").is_null());
  CHECK(shown.at("peers").at(0).at("disk_bytes").to_number<int>() == 4);
  CHECK(shown.at("peers").at(1).at("disk_bytes").is_null());
}
