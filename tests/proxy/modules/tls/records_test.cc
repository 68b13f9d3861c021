// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/records.h"

#include <catch2/catch.hpp>
#include <string>

namespace longhaul::tls {
namespace {

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST_CASE("tls records: cut anywhere they are the same") {
  const std::string stream = std::string("\x16\x03\x01\0\x02hi", 7) + std::string("\x17\x03\x03\0\0", 5) +
                             std::string("\x17\x03\x03\0\x03" "abc", 8);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    Records records;
    std::vector<std::size_t> sizes;
    for (const std::string& part : {stream.substr(0, cut), stream.substr(cut)}) {
      records.push(bytes_of(part));
      Bytes record;
      while (records.next(record) == Records::Next::record) sizes.push_back(record.size());
    }
    CHECK(sizes == std::vector<std::size_t>{7, 5, 8});
    CHECK(records.held_bytes() == 0);
  }
}

TEST_CASE("tls records: what is none is found at its first byte") {
  for (const std::string& bad : {std::string("\x13"), std::string("\x18\x03\x03"), std::string("GET / HTTP"),
                                 std::string("\x16\x02"), std::string("\x17\x03\x03\xff\xff")}) {
    Records records;
    records.push(bytes_of(bad));
    Bytes record;
    CHECK(records.next(record) == Records::Next::invalid);
    CHECK(records.take_rest().size() == bad.size());
    CHECK(records.held_bytes() == 0);
  }
}

}  // namespace
}  // namespace longhaul::tls
