// SPDX-License-Identifier: Apache-2.0
#include "proxy/log/log.h"

#include <spdlog/sinks/ostream_sink.h>

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <sstream>

#include "proxy/log/line.h"
#include "proxy/log/syslog_message.h"

using namespace longhaul;
using namespace std::chrono_literals;

namespace {

const log::WallTime kNow = log::WallTime{} + std::chrono::seconds(1'700'000'000) + 7ms;

std::string fields(log::Fields list) {
  const std::string line = log::key_value_line(kNow, log::Level::info, "e", list);
  return line.substr(std::string("2023-11-14T22:13:20.007Z info e").size());
}

}  // namespace

TEST_CASE("an event is one line of time, level, name and fields") {
  CHECK(log::key_value_line(
            kNow, log::Level::warn, "link_down",
            {{"peer", "datacenter"}, {"flow", 7u}, {"rtt_ms", 101.2}, {"resumed", true}, {"n", -3}}) ==
        "2023-11-14T22:13:20.007Z warn link_down peer=datacenter flow=7 rtt_ms=101.2 resumed=true n=-3");
}

TEST_CASE("ambiguous text is quoted and escaped") {
  CHECK(fields({{"a", ""}}) == " a=\"\"");
  CHECK(fields({{"a", "no route"}}) == " a=\"no route\"");
  CHECK(fields({{"a", "x=y"}}) == " a=\"x=y\"");
  CHECK(fields({{"a", "say \"hi\" \\"}}) == " a=\"say \\\"hi\\\" \\\\\"");
  CHECK(fields({{"a", "one\ntwo\r\t"}}) == " a=\"one\\ntwo\\r\\t\"");
  CHECK(fields({{"a", "\x1b[31m"}}) == " a=\"\\x1b[31m\"");
  CHECK(fields({{"a", "caf\xc3\xa9"}}) == " a=caf\xc3\xa9");
  CHECK(fields({{"a",
                 "\xc2\x9b"
                 "31m"}}) == " a=\"\\xc2\\x9b31m\"");
  CHECK(fields({{"a", "\xff\xc3"}}) == " a=\"\\xff\\xc3\"");
  CHECK(fields({{"a", "[::1]:80"}}) == " a=[::1]:80");
  CHECK(fields({{"a", std::numeric_limits<double>::infinity()}}) == " a=none");
  CHECK(fields({{"a", std::numeric_limits<std::uint64_t>::max()}}) == " a=18446744073709551615");
}

TEST_CASE("JSON lines parse back to what was logged, whatever the bytes") {
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += static_cast<char>(random() % (i % 2 == 0 ? 128 : 256));
    const std::string line =
        log::json_line(kNow, log::Level::error, "e", {{"text", text}, {"x", 0.1}, {"n", -1}, {"on", false}});
    REQUIRE(line.find('\n') == std::string::npos);
    const auto object = boost::json::parse(line).as_object();
    if (i % 2 == 0) CHECK(object.at("text").as_string() == text);
    CHECK(object.at("x").as_double() == 0.1);
    CHECK(object.at("n").as_int64() == -1);
    CHECK(object.at("on").as_bool() == false);
    CHECK(object.at("level").as_string() == "error");
    CHECK(object.at("time").as_string() == "2023-11-14T22:13:20.007Z");
  }
  CHECK(log::json_line(kNow, log::Level::info, "e", {{"a", "\xed\xa0\x80\xc2\x9b"}, {"b", std::nan("")}}) ==
        "{\"time\":\"2023-11-14T22:13:20.007Z\",\"level\":\"info\",\"event\":\"e\",\"a\":"
        "\"\\ufffd\\ufffd\\ufffd\\u009b\","
        "\"b\":null}");
}

TEST_CASE("a session writes every line of the selected levels, and no line before or after it") {
  std::ostringstream out;
  log::error("before");
  {
    const log::Session session({.level = "info", .json = false},
                               std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
    CHECK(log::enabled(log::Level::info));
    CHECK_FALSE(log::enabled(log::Level::debug));
    for (int i = 0; i < 100; ++i) log::info("started", {{"n", i}});
    log::debug("hidden");
    log::warn("{}", {{"%v", "{}"}});  // nothing in an event is a format
  }
  log::error("after");
  const std::string text = out.str();
  CHECK(std::count(text.begin(), text.end(), '\n') == 101);
  CHECK(text.find(" info started n=99\n") != std::string::npos);
  CHECK(text.ends_with(" warn {} %v={}\n"));
  for (auto absent : {"before", "hidden", "after"}) CHECK(text.find(absent) == std::string::npos);
}

TEST_CASE("syslog messages for the network are those of RFC 5424") {
  const log::SyslogSource source{"branch.example", 77};
  CHECK(log::rfc5424_message(source, kNow, log::Level::warn, "link_down", "link_down peer=dc") ==
        "<28>1 2023-11-14T22:13:20.007Z branch.example longhaul 77 link_down - link_down peer=dc");
  CHECK(log::rfc5424_message({"", 1}, kNow, log::Level::error, "", "x") ==
        "<27>1 2023-11-14T22:13:20.007Z - longhaul 1 - - x");
  CHECK(log::rfc5424_message({"a b\n", 1}, kNow, log::Level::trace, std::string(50, 'e'), "x") ==
        "<31>1 2023-11-14T22:13:20.007Z a_b_ longhaul 1 " + std::string(32, 'e') + " - x");
  std::string accents;
  for (int i = 0; i < 2000; ++i) accents += "\xc3\xa9";
  const std::string cut = log::rfc5424_message(source, kNow, log::Level::info, "e", accents);
  CHECK(cut.size() >= log::kMostSyslogBytes - 1);
  CHECK(cut.size() <= log::kMostSyslogBytes);
  CHECK(cut.ends_with("\xc3\xa9"));
}

TEST_CASE("syslog messages for this host are those of syslog(3)") {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  CHECK(log::local_syslog_message({"branch", 77}, kNow, log::Level::info, "link_up peer=dc") ==
        "<30>Nov 14 22:13:20 longhaul[77]: link_up peer=dc");
}
