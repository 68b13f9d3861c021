// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/link_lines.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

using namespace longhaul::cli;
namespace json = boost::json;

namespace {

json::value udp_link() {
  return json::parse(R"({"carrier": "udp", "udp": {"state": "up", "remote_address": "192.0.2.1:4433",
    "datagram_bytes": 1472, "pacing_rate_bits": 50000000, "packets_sent": 1000, "packets_lost": 7,
    "repairs_sent": 0, "symbols_recovered": 0, "fallbacks": 0}})");
}
json::object& udp_of(json::value& link) { return link.at("udp").as_object(); }
bool says(const std::string& line, const std::string& part) { return line.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a percentage is rounded to a tenth, and there is none of nothing") {
  CHECK(percent(1, 0) == "-");
  CHECK(percent(0, 3) == "0.0 %");
  CHECK(percent(1, 3) == "33.3 %");
  CHECK(percent(9995, 10000) == "100.0 %");
  CHECK(percent(3, 2) == "150.0 %");  // more than before: it did not pay
}

TEST_CASE("the state of UDP is told by what an operator can do about it") {
  auto link = udp_link();
  udp_of(link)["state"] = "probing";
  CHECK(udp_line(link) == "probing UDP");
  udp_of(link)["remote_address"] = nullptr;
  CHECK(udp_line(link) == "no UDP packet received yet");
  udp_of(link)["state"] = "failed";
  CHECK(says(udp_line(link), "firewalls"));
}

TEST_CASE("a line of an earlier daemon, without some fields, is told as far as it goes") {
  auto link = udp_link();
  CHECK(says(udp_line(link), "using UDP, datagrams of 1472 bytes, paced at"));
  CHECK(says(udp_line(link), "7 of 1000 packets lost"));
  CHECK_FALSE(says(udp_line(link), "repair"));
  CHECK_FALSE(says(udp_line(link), "fell back"));
  udp_of(link)["datagram_bytes"] = nullptr;
  udp_of(link)["pacing_rate_bits"] = nullptr;
  CHECK(udp_line(link) == "using UDP, 7 of 1000 packets lost");
  link.as_object()["carrier"] = "tcp";
  CHECK(says(udp_line(link), "not used"));
}

TEST_CASE("what limits the rate, and what it cost, is told when there is something to tell") {
  auto link = udp_link();
  auto& udp = udp_of(link);
  udp["rate"] = {{"law", "limited"}, {"competes", true}, {"policed", true}};
  udp["fallbacks"] = 1;
  udp["symbols_recovered"] = 3;
  udp["drops_bursts"] = true;
  const auto line = udp_line(link);
  CHECK(says(line, "below the configured rate"));
  CHECK(says(line, "other traffic"));
  CHECK(says(line, "policer"));
  CHECK(says(line, "one by one"));
  CHECK(says(line, "3 lost packets recovered"));
  CHECK(says(line, "fell back to TCP 1 time"));
  CHECK_FALSE(says(line, "1 times"));
}

TEST_CASE("nothing sent is no reduction, and not a division by zero") {
  const json::value none{{"plain", 0}, {"deduped", 0}, {"encoded", 0}};
  CHECK(stages(none) == "nothing");
  const json::value some{{"plain", 1000}, {"deduped", 500}, {"encoded", 250}};
  CHECK(says(stages(some), "50.0 % after deduplication, 25.0 % after compression"));
}
