// SPDX-License-Identifier: Apache-2.0
// Messages cross any split of their bytes; what is none is refused before anything is kept for it.
#include "tools/measuring/messages.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>

#include "tools/measuring/greeting.h"
#include "tools/measuring/trouble.h"

using namespace longhaul;
using namespace longhaul::measuring;

namespace {

boost::json::object message(std::string_view name, boost::json::value value) {
  boost::json::object made;
  made[name] = std::move(value);
  return made;
}

}  // namespace

TEST_CASE("messages arrive complete however their bytes are split", "[measuring]") {
  const std::string stream =
      encode(message("a", 1)) + encode(message("b", boost::json::string(70'000, 'x'))) + encode({});
  for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, std::size_t{4096}, stream.size()}) {
    MessageReader reader{kLongestMessage};
    std::vector<boost::json::object> got;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(as_bytes(std::string_view(stream).substr(at, piece)));
      for (;;) {
        auto next = reader.next();
        REQUIRE(next.has_value());
        if (!*next) break;
        got.push_back(std::move(**next));
      }
    }
    REQUIRE(got.size() == 3);
    CHECK(number(got[0], "a", 0, 1) == 1);
    CHECK(text(got[1], "b", 70'000).size() == 70'000);
    CHECK(got[2].empty());
  }
}

TEST_CASE("a length beyond the limit is refused at once", "[measuring]") {
  MessageReader reader{4096};
  reader.feed(as_bytes(std::string_view("\x00\x00\x10\x01", 4)));
  REQUIRE(reader.next().has_error());
  CHECK(reader.next().error() == MessageError::too_long);
  MessageReader web{4096};
  web.feed(as_bytes("GET / HTTP/1.1\r\n\r\n"));
  CHECK(web.next().has_error());
}

TEST_CASE("input that is no JSON object, or nested too deeply, is refused", "[measuring]") {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  for (const std::string& body :
       {std::string("[]"), std::string("{\"a\":"), std::string(), "{\"a\":" + deep + "}"}) {
    MessageReader reader{kLongestMessage};
    std::string framed(4, '\0');
    framed[3] = static_cast<char>(body.size());
    framed += body;
    reader.feed(as_bytes(framed));
    INFO(body);
    CHECK(reader.next().has_error());
  }
}

TEST_CASE("members of the wrong type or size are named in the error", "[measuring]") {
  CHECK_THROWS_WITH(number({}, "port", 0, 1), Catch::Contains("without 'port'"));
  CHECK_THROWS_WITH(number(message("port", "x"), "port", 0, 1),
                    Catch::Contains("'port' is not a whole number"));
  CHECK_THROWS_WITH(number(message("port", 1.5), "port", 0, 9),
                    Catch::Contains("'port' is not a whole number"));
  CHECK_THROWS_WITH(number(message("port", 70'000), "port", 0, 65'535),
                    Catch::Contains("70000, not between 0 and 65535"));
  CHECK_THROWS_WITH(text(message("host", "abc"), "host", 2), Catch::Contains("longer than 2"));
  CHECK_THROWS_WITH(array(message("list", 1), "list", 2), Catch::Contains("not a list"));
  CHECK_THROWS_AS(encode(message("a", boost::json::string(kLongestMessage, 'x'))), Trouble);
}

TEST_CASE("only two sides with the same token authenticate each other", "[measuring]") {
  const auto outcome = [](const Identity& dialling, const Identity& listening) -> std::string {
    Greeting a{dialling, Side::dials};
    Greeting b{listening, Side::listens};
    try {
      a.read_hello(b.hello(), "b");
      b.read_hello(a.hello(), "a");
      b.read_proof(a.proof(), "a");
      a.read_proof(b.proof(), "b");
    } catch (const Trouble& trouble) {
      return trouble.what();
    }
    return "friends";
  };
  const Identity mine{"longhaul-txn", 3, "secret"};
  CHECK(outcome(mine, mine) == "friends");
  CHECK(outcome({"longhaul-txn", 3}, {"longhaul-txn", 3}) == "friends");
  CHECK_THAT(outcome(mine, {"longhaul-txn", 3, "other"}), Catch::Contains("a different token"));
  CHECK_THAT(outcome(mine, {"longhaul-txn", 3}), Catch::Contains("a different token: this side has none"));
  CHECK_THAT(outcome({"longhaul-txn", 2, "secret"}, mine),
             Catch::Contains("version 3") && Catch::Contains("version 2"));
  CHECK_THAT(outcome({"longhaul-ttcp", 3, "secret"}, mine), Catch::Contains("longhaul-ttcp was expected"));
}

TEST_CASE("a proof cannot be replayed, neither later nor to its sender", "[measuring]") {
  const Identity mine{"longhaul-txn", 1, "secret"};
  Greeting a{mine, Side::dials};
  Greeting b{mine, Side::listens};
  a.read_hello(b.hello(), "b");
  b.read_hello(a.hello(), "a");
  CHECK_THROWS_AS(a.read_proof(a.proof(), "b"), Trouble);
  Greeting later{mine, Side::listens};
  later.read_hello(a.hello(), "a");
  CHECK_THROWS_AS(later.read_proof(a.proof(), "a"), Trouble);
  CHECK_THROWS_AS(a.read_hello(a.hello(), "b"), Trouble);
}
