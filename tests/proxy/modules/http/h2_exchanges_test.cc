// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/exchanges.h"

#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

TEST_CASE("http/2 exchanges: each is found by the names of both sides, until they are over") {
  Exchanges exchanges;
  Exchange& one = exchanges.open(1, {});
  Exchange& other = exchanges.open(3, {});
  CHECK(exchanges.of_client(1) == &one);
  CHECK(exchanges.of_server(1) == nullptr);
  exchanges.join(one, 7);
  exchanges.join(other, 1);
  CHECK(exchanges.of_server(7) == &one);
  CHECK(exchanges.of_server(1) == &other);
  CHECK(exchanges.size() == 2);
  CHECK(exchanges.size_at_server() == 2);
  // It is asked once more, on another stream.
  exchanges.leave(one);
  CHECK(one.server == 0);
  CHECK(exchanges.of_server(7) == nullptr);
  exchanges.join(one, 9);
  CHECK(exchanges.of_server(9) == &one);
  // The client is gone first; the server's stream still finds it.
  one.client = 0;
  CHECK(exchanges.of_server(9) == &one);
  exchanges.leave(one);
  exchanges.erase(one);
  CHECK(exchanges.of_client(1) == nullptr);
  CHECK(exchanges.all().size() == 1);
  CHECK(exchanges.size_at_server() == 1);
}

TEST_CASE("http/2 exchanges: memory grows with the fields, and is given back") {
  Exchanges exchanges;
  CHECK(exchanges.memory_bytes() == 0);
  Fields block;
  block.add({"cookie", std::string(10'000, 'x')});
  exchanges.open(1, {});
  const std::size_t small = exchanges.memory_bytes();
  CHECK(small > 0);
  Exchange& large = exchanges.open(3, block);
  CHECK(exchanges.memory_bytes() > 2 * small + 20'000);
  CHECK(large.block.value("cookie").size() == 10'000);
  // Also if the fields are not needed any more: nobody counts twice.
  large.block = {};
  exchanges.erase(large);
  CHECK(exchanges.memory_bytes() == small);
  const auto site = std::make_shared<Site>(1 << 20);
  exchanges.of_client(1)->incoming.emplace(site, "key", 0, Stored{}, false);
  const std::string content(5'000, 'c');
  CHECK(exchanges.of_client(1)->incoming->add(bytes_of(content)));
  CHECK(exchanges.memory_bytes() == small + 5'000);
}

TEST_CASE("http/2 exchanges: informational responses are bounded in number and size") {
  Informed few;
  for (unsigned i = 0; i < Informed::kMost; ++i) CHECK(few.take({}));
  CHECK_FALSE(few.take({}));
  Fields half;
  half.add({"link", std::string(Informed::kMostBytes / 2, 'x')});
  Informed large;
  CHECK(large.take(half));
  CHECK_FALSE(large.take(half));  // the field itself counts, too
}

}  // namespace
}  // namespace longhaul::http::h2
