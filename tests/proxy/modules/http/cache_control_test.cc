// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/cache_control.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::http;

namespace {

Directives said_by(std::initializer_list<Field> all) {
  Fields fields;
  for (const Field& field : all) fields.add(field);
  return directives_of(fields);
}

}  // namespace

TEST_CASE("cache-control: directives are read in any case, from several fields, with quotes") {
  const Directives says =
      said_by({{"Cache-Control", "PUBLIC , Max-Age=\"60\""}, {"cache-control", "must-revalidate,no-cache"}});
  CHECK(says.is_public);
  CHECK(says.max_age == 60);
  CHECK(says.must_revalidate);
  CHECK(says.no_cache);
  CHECK_FALSE(says.no_store);
  CHECK_FALSE(says.shared_max_age);
  CHECK(says.is_for_all());
}

TEST_CASE("cache-control: of a lifetime given twice the shorter counts, and what is no number is none") {
  CHECK(said_by({{"Cache-Control", "max-age=60, max-age=30, max-age=90"}}).max_age == 30);
  CHECK(said_by({{"Cache-Control", "max-age=soon"}}).max_age == 0);
  CHECK(said_by({{"Cache-Control", "max-age"}}).max_age == 0);
  CHECK(said_by({{"Cache-Control", "max-age=-1"}}).max_age == 0);
  CHECK(said_by({{"Cache-Control", "s-maxage=99999999999999999999"}}).shared_max_age == kMostSeconds);
}

TEST_CASE("cache-control: Pragma counts only without Cache-Control") {
  CHECK(said_by({{"Pragma", "no-cache"}}).no_cache);
  CHECK_FALSE(said_by({{"Pragma", "no-cache"}, {"Cache-Control", "max-age=1"}}).no_cache);
}

TEST_CASE("dates of HTTP are read in their three forms") {
  CHECK(date_of("Sun, 06 Nov 1994 08:49:37 GMT") == 784'111'777);
  CHECK(date_of("Sunday, 06-Nov-94 08:49:37 GMT") == 784'111'777);
  CHECK(date_of("Sun Nov  6 08:49:37 1994") == 784'111'777);
  for (const char* text :
       {"", "0", "yesterday", "Sun, 06 Nov 1994 08:49:37 GMT+1", "Sun, 32 Nov 1994 08:49:37 GMT"})
    CHECK_FALSE(date_of(text));
}
