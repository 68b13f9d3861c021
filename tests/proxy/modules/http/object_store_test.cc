// SPDX-License-Identifier: Apache-2.0
// The store keeps to its size, forgets what was used longest ago, and knows what was erased meanwhile.
#include <catch2/catch.hpp>

#include "proxy/modules/http/object_store.h"

using namespace longhaul;
using namespace longhaul::http;

namespace {

Stored object_of(std::size_t bytes, std::vector<std::pair<std::string, std::string>> vary = {}) {
  Stored stored;
  stored.content = {Slice::copy_of(Buffer(bytes))};
  stored.content_bytes = bytes;
  stored.vary = std::move(vary);
  return stored;
}
RequestHead asking(std::string language = "") {
  RequestHead request{.method = "GET", .target = "/", .minor = 1, .fields = {}};
  if (!language.empty()) request.fields.add({"Accept-Language", std::move(language)});
  return request;
}

}  // namespace

TEST_CASE("http store: what was used longest ago makes room") {
  ObjectStore store(1 << 20);
  for (int i = 0; i < 200; ++i) {
    store.put("key " + std::to_string(i), object_of(20'000));
    CHECK(store.find("key 0", asking()));
    CHECK(store.bytes() <= 1 << 20);
  }
  CHECK_FALSE(store.find("key 1", asking()));
  CHECK(store.find("key 199", asking()));
  store.put("large", object_of(300'000));
  CHECK_FALSE(store.find("large", asking()));
  for (int i = 0; i < 200; ++i) store.erase("key " + std::to_string(i));
  CHECK(store.bytes() == 0);
}

TEST_CASE("http store: one object for each variant, and a bounded number of them") {
  ObjectStore store(1 << 20);
  for (int i = 0; i < 20; ++i)
    for (int again = 0; again < 2; ++again)
      store.put("key", object_of(100, {{"accept-language", std::to_string(i)}}));
  CHECK_FALSE(store.find("key", asking("0")));
  CHECK(store.find("key", asking("19")));
  CHECK(store.bytes() < 20'000);
}

TEST_CASE("http store: clearing erases everything, also what was asked for before") {
  ObjectStore store(1 << 20);
  const std::uint64_t before = store.erasures();
  store.put("key", object_of(1000));
  CHECK(store.clear() > 1000);
  CHECK(store.bytes() == 0);
  CHECK_FALSE(store.find("key", asking()));
  CHECK(store.was_erased("key", before));
  store.put("key", object_of(1000));
  CHECK(store.find("key", asking()));
}

TEST_CASE("http store: an erasure is known to those who asked before, by key, for a while") {
  ObjectStore store(1 << 20);
  const std::uint64_t before = store.erasures();
  store.erase("a");
  CHECK(store.was_erased("a", before));
  CHECK_FALSE(store.was_erased("b", before));
  CHECK_FALSE(store.was_erased("a", store.erasures()));
  for (std::size_t i = 0; i < ObjectStore::kErasuresKnown; ++i) store.erase("c" + std::to_string(i));
  CHECK(store.was_erased("b", before));
}
