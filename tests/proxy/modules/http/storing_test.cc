// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/storing.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::http;

namespace {

constexpr std::uint64_t kStoringSite = 1 << 20;

RequestHead asking_to_store() {
  constexpr std::string_view kText = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
  return read_request(std::as_bytes(std::span(kText))).value();
}
Stored storable() {
  constexpr std::string_view kText = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\n";
  return to_store(asking_to_store(), read_response(std::as_bytes(std::span(kText))).value(), {},
                  1'700'000'000);
}
void add(Storing& storing, std::uint64_t bytes) {
  REQUIRE(storing.content());
  storing.content()->add(Buffer(bytes, std::byte{'x'}));
  storing.count();
}

}  // namespace

TEST_CASE("http cache: a response is in the store when it is complete, and nowhere before") {
  const auto site = std::make_shared<Site>(kStoringSite);
  Storing storing(site);
  CHECK(storing.content() == nullptr);
  storing.begin(storable());
  add(storing, 1000);
  CHECK(site->pending_bytes == 1000);
  CHECK(storing.bytes() == 1000);
  CHECK(site->store.find("k", asking_to_store()) == nullptr);
  storing.complete("k", site->store.erasures(), true);
  const Object found = site->store.find("k", asking_to_store());
  REQUIRE(found);
  CHECK(found->content_bytes == 1000);
  CHECK_FALSE(found->in_memory_only);
  CHECK(site->pending_bytes == 0);
  CHECK(storing.content() == nullptr);
}

TEST_CASE("http cache: a response that was dropped, or erased while it came, is not stored") {
  const auto site = std::make_shared<Site>(kStoringSite);
  Storing storing(site);
  storing.begin(storable());
  add(storing, 10);
  storing.drop();
  storing.complete("k", site->store.erasures(), true);
  CHECK(site->store.find("k", asking_to_store()) == nullptr);

  const std::uint64_t asked_at = site->store.erasures();
  storing.begin(storable());
  add(storing, 10);
  site->store.erase("k");
  storing.complete("k", asked_at, true);
  CHECK(site->store.find("k", asking_to_store()) == nullptr);
  CHECK(site->pending_bytes == 0);
}

TEST_CASE(
    "http cache: responses that are coming are limited, alone and together, and give their bytes back") {
  const auto site = std::make_shared<Site>(kStoringSite);
  const std::uint64_t most = site->store.most_object_bytes();
  {
    Storing first(site), second(site), third(site);
    for (Storing* each : {&first, &second, &third}) each->begin(storable());
    add(first, most);
    add(second, most);
    add(third, 1);  // together too many
    CHECK(third.content() == nullptr);
    CHECK(site->pending_bytes == 2 * most);
    add(first, 1);  // too large alone
    CHECK(first.content() == nullptr);
    CHECK(site->pending_bytes == most);
    CHECK(second.content() != nullptr);
  }
  CHECK(site->pending_bytes == 0);
}
