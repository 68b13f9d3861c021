// SPDX-License-Identifier: Apache-2.0
// Tests what the live views show, and that nothing from the network can steer the terminal.
#include "proxy/cli/top.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <sstream>

#include "proxy/cli/live_screen.h"
#include "proxy/cli/verdict_lines.h"
#include "tests/proxy/cli/typed.h"

namespace longhaul::cli {
namespace {

namespace json = boost::json;

json::value status(std::uint64_t lan, std::uint64_t wan) {
  auto answer = json::parse(R"({"site": "branch", "version": "1", "uptime_s": 90,
    "verdict": {"ok": true, "problems": [], "saved_bytes": 512, "saved_share": 0.5},
    "memory": {"bytes": 1024, "limit_bytes": 2048},
    "flows": {"live": 2, "limit": 10, "bytes": {"lan_in": 0, "lan_out": 0, "wan_in": 0, "wan_out": 0}},
    "links": [{"peer": "datacenter", "state": "up", "carrier": "udp", "rtt_ms": 40.5, "bytes_sent": 0, "bytes_received": 0,
      "streams": 2, "udp": {"packets_sent": 100, "packets_lost": 3, "spurious_losses": 1, "symbols_recovered": 7,
      "rate": {"queue_ms": 1.5}}}, {"peer": "b", "state": "down", "carrier": null, "rtt_ms": null, "bytes_sent": 0,
      "bytes_received": 0, "streams": 0, "udp": null}]})");
  auto& bytes = answer.at("flows").at("bytes").as_object();
  bytes["lan_in"] = lan;
  bytes["wan_out"] = wan;
  return answer;
}

json::value talkers(std::uint64_t lan) {
  auto answer = json::parse(R"({"count": 1, "talkers": [{"name": "10.0.0.1", "flows": 2,
    "bytes": {"lan_in": 0, "lan_out": 0, "wan_in": 0, "wan_out": 0}}]})");
  answer.at("talkers").at(0).at("bytes").as_object()["lan_in"] = lan;
  return answer;
}

TEST_CASE("top shows rates between two answers, and the savings of each talker") {
  Top top;
  const auto first = top.frame(status(1'000'000, 500'000), talkers(1000), 0);
  CHECK(first.starts_with("OK; saved 512 B (50.0 %)\n"));
  CHECK(has(first, "LAN -, WAN -"));
  CHECK(has(first, "datacenter  up"));
  CHECK(has(first, "2.0 %"));  // one of three was lost in appearance alone
  const auto second = top.frame(status(2'000'000, 750'000), talkers(251'000), 2);
  CHECK(has(second, "LAN 4.00 Mbit/s, WAN 1.00 Mbit/s"));
  CHECK(has(second, "10.0.0.1      2  1.00 Mbit/s"));
  std::istringstream lines(second);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  const auto restarted = top.frame(status(10, 10), talkers(10), 2);
  CHECK(has(restarted, "LAN -, WAN -"));  // a restarted daemon has no negative rate
}

TEST_CASE("top shows stored responses on disk, and a disk that is late") {
  const auto at = [](std::uint64_t read) {
    auto answer = status(0, 0);
    answer.as_object()["disk_objects"] =
        json::parse(R"({"bytes": 1048576, "limit_bytes": 4194304, "objects": 3,
      "put_bytes": 0, "read_bytes": 0})");
    answer.at("disk_objects").as_object()["read_bytes"] = read;
    return answer;
  };
  Top top;
  CHECK_FALSE(has(top.frame(status(0, 0), talkers(0), 0), "stored responses"));
  CHECK(has(top.frame(at(0), talkers(0), 0),
            "disk 1.00 MiB of 4.00 MiB in 3 stored responses; written -, read -\n"));
  auto late = at(250'000);
  late.at("disk_objects").as_object()["answers"] = false;
  CHECK(has(top.frame(late, talkers(0), 2), "; written 0 bit/s, read 1.00 Mbit/s, late\n"));
}

TEST_CASE("top has a line for each path, and shows one that does not work") {
  const auto at = [](std::uint64_t sent) {
    auto answer = status(0, 0);
    answer.at("links").at(0).as_object()["paths"] = json::parse(R"([
      {"name": "fibre", "role": "carries", "reason": "no other path works", "cost": 1, "state": "up", "rtt_ms": 20.5,
       "queue_ms": 2, "packets_sent": 200, "packets_lost": 3, "spurious_losses": 1, "bytes_sent": 0, "bytes_received": 0},
      {"name": "lte", "role": "none", "reason": null, "cost": 1, "state": "failed", "rtt_ms": 60, "queue_ms": 0,
       "packets_sent": 10, "packets_lost": 5, "bytes_sent": 0, "bytes_received": 0}])");
    answer.at("links").at(0).at("paths").at(0).as_object()["bytes_sent"] = sent;
    return answer;
  };
  Top top;
  top.frame(at(0), talkers(0), 0);
  std::istringstream lines(top.frame(at(250'000), talkers(0), 2));
  std::string all, fibre, lte;
  for (std::string line; std::getline(lines, line); all += line + '\n') {
    CHECK(line.size() <= 100);
    if (line.starts_with("- fibre")) fibre = line;
    if (line.starts_with("- lte")) lte = line;
  }
  INFO(all);
  for (const char* shown : {"carries", "20.5 ms", "1.0 %", "2.00 ms", "1.00 Mbit/s"})
    CHECK(has(fibre, shown));
  for (const char* shown : {"down", "50.0 %"}) CHECK(has(lte, shown));
  CHECK_FALSE(has(lte, "ms"));
}

TEST_CASE("top shows no loss and no queue of UDP while TCP carries") {
  auto answer = status(0, 0);
  answer.at("links").at(0).as_object()["carrier"] = "tcp";
  const auto frame = Top().frame(answer, talkers(0), 0);
  CHECK(has(frame, "datacenter  up     tcp"));
  CHECK_FALSE(has(frame, "2.0 %"));
  CHECK_FALSE(has(frame, "1.50 ms"));
}

TEST_CASE("the verdict names each problem with its remedy, with and without colour") {
  auto status = json::parse(R"({"verdict": {"ok": false, "saved_bytes": -2, "saved_share": -0.1, "problems": [
    {"sentence": "The link is down.", "remedy": "look", "serious": true}]}, "throughput": null})");
  CHECK(verdict_lines(status, false) == "The link is down; the WAN carried 2 B more than the LAN\n  remedy:   look\n");
  CHECK(verdict_lines(status, true).starts_with("\x1b[31mThe link is down\x1b[0m; "));
  auto& problems = status.at("verdict").at("problems").as_array();
  problems.push_back({{"sentence", "UDP is filtered."}, {"remedy", "open it"}, {"serious", false}});
  status.as_object()["throughput"] = {{"wan_out_bits", 12'300'000}, {"wan_in_bits", 0}};
  CHECK(verdict_lines(status, false) ==
        "2 problems; the WAN carried 2 B more than the LAN; WAN now 12.3 Mbit/s out, 0 bit/s in\n"
        "  problem:  The link is down.\n  remedy:   look\n  problem:  UDP is filtered.\n  remedy:   open it\n");
}

TEST_CASE("a frame is cut to the terminal's size, and only colour sequences pass") {
  CHECK(fit("abc\ndef\nghi\n", 2, 2) == "ab\nde\n");
  CHECK(fit("", 5, 5).empty());
  CHECK(fit("no end", 80, 1) == "no end\n");
  CHECK(fit("\x1b[31mred\x1b[0m", 2, 1) == "\x1b[31mre\x1b[0m\n");
  CHECK(fit("a\x1b]0;title\x07\x1b[2Jb\r\t\x7f", 80, 1) == "a?]0;title??[2Jb???\n");
  CHECK(fit("\u00e4\u00f6\u00fc", 2, 1) == "\u00e4\u00f6\n");
}

TEST_CASE("a live view without a terminal prints as many frames as requested") {
  std::ostringstream out;
  LiveScreen screen{{.interval = std::chrono::milliseconds(1), .count = 3}, out};
  int frames = 0;
  const auto done = screen.run(
      [&]() -> config::TextResult<std::string> {
        return {boost::system::in_place_value, std::to_string(++frames)};
      },
      [](char) {});
  CHECK(done.has_value());
  CHECK(out.str() == "1\n\n2\n\n3\n\n");
}

TEST_CASE("a live view ends with the error of its frame") {
  std::ostringstream out;
  LiveScreen screen{{}, out};
  const auto done = screen.run(
      []() -> config::TextResult<std::string> { return config::TextError{"the daemon is gone"}; }, [](char) {});
  REQUIRE(done.has_error());
  CHECK(done.error().message == "the daemon is gone");
}

}  // namespace
}  // namespace longhaul::cli
