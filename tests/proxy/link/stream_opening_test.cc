// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_opening.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::link;

TEST_CASE("the peer that opens a stream sends OPEN first and once") {
  StreamOpening opening;
  CHECK_FALSE(opening.begun());
  CHECK(opening.permits(RecordType::open));
  for (RecordType other : {RecordType::answer, RecordType::data, RecordType::block, RecordType::module,
                           RecordType::end, RecordType::abort})
    CHECK_FALSE(opening.permits(other));
  OpenRequest request;
  request.module = "echo";
  opening.on_open(request);
  CHECK(opening.begun());
  CHECK(opening.request().module == "echo");
  CHECK_FALSE(opening.permits(RecordType::open));
  CHECK_FALSE(opening.permits(RecordType::answer));
  // This side's own answer changes nothing.
  for (int i = 0; i < 2; ++i) {
    for (RecordType other :
         {RecordType::data, RecordType::block, RecordType::module, RecordType::end, RecordType::abort})
      CHECK(opening.permits(other));
    opening.on_answer({});
  }
}

TEST_CASE("the peer answers an open first, or ends its direction without an answer") {
  StreamOpening opening{OpenRequest{}};
  CHECK(opening.opened_here());
  CHECK(opening.begun());
  CHECK(opening.permits(RecordType::answer));
  CHECK(opening.permits(RecordType::end));
  CHECK(opening.permits(RecordType::abort));
  for (RecordType other : {RecordType::open, RecordType::data, RecordType::block, RecordType::module})
    CHECK_FALSE(opening.permits(other));
  opening.on_answer({.outcome = ConnectOutcome::connected, .module_accepted = true});
  REQUIRE(opening.answer());
  CHECK(opening.answer()->module_accepted);
  CHECK_FALSE(opening.permits(RecordType::open));
  CHECK_FALSE(opening.permits(RecordType::answer));
  for (RecordType other :
       {RecordType::data, RecordType::block, RecordType::module, RecordType::end, RecordType::abort})
    CHECK(opening.permits(other));
}
