// SPDX-License-Identifier: Apache-2.0
// Tests the IPFIX messages against vectors that were worked out by hand from RFC 7011.
#include "proxy/export/ipfix.h"

#include <catch2/catch.hpp>
#include <string>

#include "proxy/export/flow_exporter.h"

namespace longhaul::exporting {
namespace {

using boost::asio::ip::make_address;
using namespace std::chrono_literals;

std::string hex(const Buffer& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

FlowReport report(const char* source = "10.10.1.2", const char* destination = "10.10.2.2") {
  return {.flow = 7,
          .source = {make_address(source), 40'000},
          .destination = {make_address(destination), 445},
          .direction = FlowDirection::egress,
          .end = FlowEnd::active_timeout,
          .from = std::chrono::system_clock::time_point(1'700'000'000'123ms),
          .until = std::chrono::system_clock::time_point(1'700'000'060'000ms),
          .lan_bytes = 1'000'000,
          .wan_bytes = 65'536,
          .reason = "optimised",
          .peer = "dc",
          .server_name = {},
          .module = "smb"};
}

const std::string kHeader = "000a" "LLLL" "6553f100" "00000005" "12345678";
constexpr const char* kAfterAddresses =
    "0000000000000007" "9c40" "01bd" "06" "01" "02" "0000018bcfe5687b" "0000018bcfe65260" "00000000000f4240"
    "0000000000010000" "0000000000010000" "09" "6f7074696d69736564" "02" "6463" "00" "03" "736d62";

std::string whole(Buffer message) {
  write_ipfix_header(message, {.export_time = 0x6553f100, .sequence = 5, .domain = 0x12345678});
  return hex(message);
}

std::string header(const char* length) { return std::string(kHeader).replace(4, 4, length); }

}  // namespace

TEST_CASE("IPFIX: a record of an IPv4 flow") {
  IpfixData data;
  REQUIRE(data.add(report()));
  CHECK(data.records() == 1);
  CHECK(whole(data.take()) == header("0065") + "0100" "0055" "0a0a0102" "0a0a0202" + kAfterAddresses);
  CHECK(data.records() == 0);
}

TEST_CASE("IPFIX: a flow with one IPv6 address uses the IPv6 template, and a mapped address counts as IPv4") {
  IpfixData data;
  REQUIRE(data.add(report("::ffff:10.10.1.2", "fd00::2")));
  CHECK(whole(data.take()) == header("007d") + "0101" "006d" "00000000000000000000ffff0a0a0102"
                                  "fd000000000000000000000000000002" + kAfterAddresses);
  REQUIRE(data.add(report("::ffff:10.10.1.2", "::ffff:10.10.2.2")));
  CHECK(hex(data.take()).substr(32, 4) == "0100");
}

TEST_CASE("IPFIX: consecutive records of one family share a set, and a change of family begins another") {
  IpfixData data;
  for (const char* destination : {"10.10.2.2", "10.10.2.3", "fd00::2", "10.10.2.2"}) REQUIRE(data.add(report("10.10.1.2", destination)));
  CHECK(data.records() == 4);
  const std::string text = hex(data.take()).substr(32);
  CHECK(text.substr(0, 8) == "0100" "00a6");
  CHECK(text.substr(2 * 0xa6, 8) == "0101" "006d");
  CHECK(text.substr(2 * (0xa6 + 0x6d), 8) == "0100" "0055");
  CHECK(text.size() == 2 * (0xa6 + 0x6d + 0x55));
}

TEST_CASE("IPFIX: a message never exceeds its limit, whatever the length of the texts") {
  const std::string longest(1000, 'x');
  IpfixData data;
  FlowReport large = report("fd00::1", "fd00::2");
  large.reason = large.peer = large.server_name = large.module = longest;
  REQUIRE(data.add(large));
  CHECK_FALSE(data.add(large));
  CHECK(data.add(report()));
  CHECK_FALSE(data.add(report()));
  const Buffer alone = data.take();
  CHECK(alone.size() <= kMostIpfixBytes);
  CHECK(hex(alone).substr(32, 4) == "0101");

  std::uint32_t added = 0;
  while (data.add(report())) ++added;
  CHECK(added == (kMostIpfixBytes - 16 - 4) / 81);
  CHECK(data.take().size() == 20 + 81 * added);
}

TEST_CASE("IPFIX: templates name every element in the order of the records") {
  const IpfixTemplates templates = ipfix_templates(0x7ed9);
  CHECK(templates.data_records == 5);
  CHECK(templates.message.size() <= kMostIpfixBytes);
  const std::string common =
      "00940008" "00070002" "000b0002" "00040001" "003d0001" "00880001" "00980008" "00990008" "00010008" "00170008"
      "8001000800007ed9" "8002ffff00007ed9" "8003ffff00007ed9" "8004ffff00007ed9" "8005ffff00007ed9";
  const std::string text = whole(templates.message);
  CHECK(text.substr(32, 2 * 0xbc) == "0002" "00bc"
        "0100" "0011" "00080004" "000c0004" + common +
        "0101" "0011" "001b0010" "001c0010" + common);
  const std::string rest = text.substr(32 + 2 * 0xbc);
  // Scope: enterprise and element; then type, semantics, name, description (RFC 5610).
  CHECK(rest.substr(0, 2 * 0x22) == "0003" "0022" "0102" "0006" "0002" "015a0004" "012f0002" "01530001" "01580001" "0155ffff" "0154ffff");
  const std::string types = rest.substr(2 * 0x22);
  CHECK(types.substr(0, 4) == "0102");
  CHECK(types.substr(8, 2 * 27) == "00007ed9" "0001" "04" "03" "12" "77616e4f6374657444656c7461436f756e74");
  CHECK(types.find("00007ed9" "0002" "0d" "00" "0a" "666c6f77526561736f6e") != std::string::npos);
}

TEST_CASE("IPFIX: the observation domain of a site is always the same and never zero") {
  CHECK(observation_domain("branch") == observation_domain("branch"));
  CHECK(observation_domain("branch") != observation_domain("datacenter"));
  CHECK(observation_domain("") == 2'166'136'261u);
}

}  // namespace longhaul::exporting
