// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/tcp_options.h"

#include <catch2/catch.hpp>

#include "made_packets.h"

using namespace longhaul;
using namespace longhaul::probe;

namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> made;
  for (const int value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

}  // namespace

TEST_CASE("TCP options are read back as written, in every combination") {
  for (int set = 0; set < 16; ++set) {
    TcpOptions options;
    if (set & 1) options.mss = 1460;
    if (set & 2) options.window_scale = 14;
    if (set & 4) options.sack_permitted = true;
    if (set & 8) options.timestamps = Timestamps{0xfffffffe, 7};
    const auto written = write_tcp_options(options);
    CHECK(written.size() % 4 == 0);
    CHECK(read_tcp_options(written) == options);
  }
}

TEST_CASE("TCP options changed by a middlebox are read: no-operations replace what it removed") {
  const auto found =
      read_tcp_options(bytes({2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 1, 1}));
  REQUIRE(found);
  CHECK(found->mss == 1460);
  CHECK(found->sack_permitted);
  CHECK(found->timestamps == Timestamps{1, 2});
  CHECK_FALSE(found->window_scale);
}

TEST_CASE("bytes after the end of the list are not read, and unknown kinds are kept by number") {
  const auto found = read_tcp_options(bytes({34, 2, 30, 4, 9, 9, 0, 3, 3, 9}));
  REQUIRE(found);
  CHECK(found->others == std::vector<std::uint8_t>{34, 30});
  CHECK_FALSE(found->window_scale);
}

TEST_CASE("a list with an impossible length is invalid") {
  CHECK_FALSE(read_tcp_options(bytes({2, 0})));
  CHECK_FALSE(read_tcp_options(bytes({2, 1, 1, 1})));
  CHECK_FALSE(read_tcp_options(bytes({2, 3, 5})));
  CHECK_FALSE(read_tcp_options(bytes({3, 4, 5, 5})));
  CHECK_FALSE(read_tcp_options(bytes({8, 10, 0, 0})));
  CHECK_FALSE(read_tcp_options(bytes({1, 1, 3})));
  CHECK(read_tcp_options({}));
}

TEST_CASE("a truncated header is reported, with the options that are complete") {
  const auto flow = made::flow_of(Family::v4, Kind::tcp);
  const TcpOptions options{1460, 7, true, Timestamps{1, 0}, {}};
  const auto header = make_syn(flow, 5, options);
  CHECK(read_header_options(header)->options == options);
  CHECK_FALSE(read_header_options(header)->cut);
  for (std::size_t size = 0; size < header.size(); ++size) {
    const auto found = read_header_options(Bytes(header).first(size));
    REQUIRE(found.has_value() == (size >= 20));
    if (!found) continue;
    CHECK(found->cut);
    CHECK(found->options.mss.has_value() == (size >= 24));
  }
}
