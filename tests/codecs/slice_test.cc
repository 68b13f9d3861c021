// SPDX-License-Identifier: Apache-2.0
#include "codecs/slice.h"

#include <catch2/catch.hpp>

using namespace longhaul;

TEST_CASE("a part of a slice keeps the bytes alive after the whole is destroyed") {
  Slice part;
  {
    Slice whole = Slice::copy_of(as_bytes("branch and datacenter"));
    part = whole.sub(11, 10);
  }
  CHECK(as_text(part.bytes()) == "datacenter");
  CHECK(part.from(10).empty());
}

TEST_CASE("an empty slice has no memory") { CHECK(Slice::copy_of({}).bytes().data() == nullptr); }
