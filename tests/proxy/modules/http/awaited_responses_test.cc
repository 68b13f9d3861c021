// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/awaited_responses.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::http;

namespace {

Awaited awaited_at(std::string key, bool is_question = false) {
  Awaited awaited;
  awaited.key = std::move(key);
  if (is_question) awaited.asked_about = std::make_shared<const Stored>();
  return awaited;
}

}  // namespace

TEST_CASE("http cache: responses come in the order of the requests, and their memory is returned") {
  AwaitedResponses awaited;
  awaited.add(awaited_at("a"));
  const std::size_t one = awaited.bytes();
  CHECK(one > 0);
  awaited.add(awaited_at("b" + std::string(1000, 'b'), true));
  CHECK(awaited.bytes() >= 2 * one + 1000);
  CHECK(awaited.first().key == "a");
  awaited.first().key.clear();  // what was counted is returned, whatever has become of it
  awaited.pop_first();
  CHECK(awaited.first().key.front() == 'b');
  awaited.first().asked_about.reset();
  awaited.pop_first();
  CHECK(awaited.empty());
  CHECK(awaited.bytes() == 0);
  awaited.add(awaited_at("c"));
  awaited.clear();
  CHECK(awaited.size() == 0);
  CHECK(awaited.bytes() == 0);
}

TEST_CASE("http cache: a question of this half is known until its answer has begun") {
  AwaitedResponses awaited;
  CHECK_FALSE(awaited.has_question(0));
  CHECK_FALSE(awaited.has_question(1));
  awaited.add(awaited_at("a", true));
  awaited.add(awaited_at("b"));
  CHECK(awaited.has_question(0));
  CHECK_FALSE(awaited.has_question(1));
  CHECK_FALSE(awaited.has_question(5));
}
