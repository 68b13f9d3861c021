// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/hello_frame.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::link;

namespace {

HelloFrame full_hello() {
  HelloFrame hello{.site = "branch", .udp_port = 7600, .epoch = 3, .ciphers = 1, .blocks = kBlockVersion};
  hello.modules = {{"smb", 4}};
  hello.features = {"smb.prefetch"};
  hello.paths = {"dsl", "lte"};
  return hello;
}

Buffer hello_body(const HelloFrame& hello) {
  Buffer body;
  ByteWriter writer(body);
  write_hello(hello, writer);
  return body;
}

std::optional<HelloFrame> hello_in(Bytes body) {
  ByteReader in(body);
  auto hello = read_hello(in);
  if (hello) CHECK(in.remaining() == 0);
  return hello;
}

}  // namespace

TEST_CASE("a hello is read as it was written") {
  const auto read = hello_in(hello_body(full_hello()));
  REQUIRE(read);
  CHECK(read->site == "branch");
  CHECK(read->udp_port == 7600);
  CHECK(read->epoch == 3);
  CHECK(read->ciphers == 1);
  CHECK(read->blocks == kBlockVersion);
  CHECK((read->modules == full_hello().modules));
  CHECK(read->features == full_hello().features);
  CHECK(read->paths == full_hello().paths);
}

TEST_CASE("fields at the end that say nothing are not written, and read as nothing") {
  HelloFrame hello = full_hello();
  std::size_t size = hello_body(hello).size();
  const auto shrinks = [&] {
    const Buffer body = hello_body(hello);
    const bool shorter = body.size() < size;
    size = body.size();
    return shorter && hello_in(body).has_value();
  };
  hello.paths.clear();
  CHECK(shrinks());
  hello.features.clear();
  CHECK(shrinks());
  hello.modules.clear();
  CHECK(shrinks());
  hello.blocks = 0;
  CHECK(shrinks());
  CHECK(hello_in(hello_body(hello))->blocks == 0);
}

TEST_CASE("what a later release adds is skipped, and of another version only the number is read") {
  Buffer body = hello_body(full_hello());
  body.push_back(std::byte{42});
  CHECK(hello_in(body));
  const auto other = hello_in(Buffer{std::byte{2}, std::byte{42}});
  REQUIRE(other);
  CHECK(other->version == 2);
}

TEST_CASE("a hello with a path twice or without a name, or a key number that is too large, is malformed") {
  HelloFrame hello = full_hello();
  SECTION("twice") { hello.paths = {"dsl", "dsl"}; }
  SECTION("without a name") { hello.paths = {""}; }
  SECTION("too many") { hello.paths = {"1", "2", "3", "4", "5", "6", "7", "8", "9"}; }
  SECTION("key number") { hello.epoch = kMaxEpoch + 1; }
  CHECK_FALSE(hello_in(hello_body(hello)));
}
