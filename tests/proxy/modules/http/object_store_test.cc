// SPDX-License-Identifier: Apache-2.0
// The store keeps to its size, forgets what was used longest ago, and knows what was erased meanwhile.
#include <catch2/catch.hpp>

#include <set>

#include "proxy/modules/http/object_store.h"
#include "proxy/modules/http/place.h"

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

TEST_CASE("http store: keys of a decrypted connection are those of no connection in the clear") {
  const modules::Ends ends{.server_port = 8443};
  const Place clear(ends, ""), decrypted(ends, "intranet.corp"), other(ends, "other.corp");
  const auto asks = [](std::string host, std::string target = "/") {
    RequestHead request{.method = "GET", .target = std::move(target), .minor = 1, .fields = {}};
    request.fields.add({"Host", std::move(host)});
    return request;
  };
  const std::string host = "intranet.corp:8443";
  std::set<std::string> keys;
  for (const std::string& key :
       {clear.key_of(asks(host)), decrypted.key_of(asks(host)), other.key_of(asks(host)), clear.key_of(asks(host, "/ /")),
        clear.key_of(asks("tls intranet.corp " + host)), clear.key_of(asks("tls", "/intranet.corp " + host + " /")),
        clear.key_of(asks("tlsintranet.corp" + host)), clear.key_of(asks(host + " /"))})
    CHECK(keys.insert(key).second);
  CHECK(decrypted.key_of(asks(host)).starts_with(decrypted.keys_begin()));
  CHECK(clear.key_of(asks(host)).starts_with(clear.keys_begin()));
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
