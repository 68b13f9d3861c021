// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/answers.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

using namespace longhaul::control;
namespace json = boost::json;

TEST_CASE("a refusal is JSON whatever the request that it repeats") {
  const std::string hostile = in_quotes("\"}, {\"ok\": \x01 </script>\n");
  const Answer answer = refusal(boost::beast::http::status::bad_request, hostile + " is not a number");
  CHECK(answer.status == boost::beast::http::status::bad_request);
  CHECK(answer.content_type == "application/json");
  const json::value said = json::parse(answer.body);
  REQUIRE(said.as_object().size() == 1);
  CHECK(said.at("error").as_string() == hostile + " is not a number");
  CHECK(answer.body.find('\n') == answer.body.size() - 1);  // one line
}
