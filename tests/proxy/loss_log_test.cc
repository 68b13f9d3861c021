// SPDX-License-Identifier: Apache-2.0
// The log's lines about lost writes: each has all that an auditor asks for.
#include "proxy/loss_log.h"

#include <spdlog/sinks/ostream_sink.h>

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <sstream>

#include "proxy/flows/ends.h"
#include "proxy/log/log.h"

namespace longhaul {
namespace {

namespace json = boost::json;
using boost::asio::ip::make_address;

modules::LostFile robbed() {
  return {.name = "SHARE\\robbed",
          .ends = flows::ends_of(make_address("10.0.0.1"), {{}, make_address("10.0.2.2"), 445}),
          .cause = "link_lost",
          .ranges = {{0, 4096}, {8192, 12288}}};
}

// What was logged, without the time.
std::vector<json::object> logged(const std::function<void(LossLog&)>& act) {
  std::ostringstream out;
  {
    const log::Session session({.level = "info", .json = true},
                               std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
    LossLog losses;
    act(losses);
  }
  std::vector<json::object> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) {
    lines.push_back(json::parse(line).as_object());
    lines.back().erase("time");
  }
  return lines;
}

}  // namespace

TEST_CASE("a loss and its report are logged with file, client, server, ranges and cause") {
  auto unknown = robbed();
  unknown.ranges.clear();
  const auto lines = logged([&](LossLog& log) {
    log.lost({.file = robbed(), .status = "0x00000000", .is_certain = true});
    log.lost({.file = unknown, .status = "0x00000000", .is_certain = false});
    log.reported({.file = robbed(), .how = "next_open", .at = {}});
    log.forgotten(robbed());
  });
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == json::object{{"level", "error"},
                                 {"event", "promise_lost"},
                                 {"file", "SHARE\\robbed"},
                                 {"client", "10.0.0.1"},
                                 {"server", "10.0.2.2"},
                                 {"ranges", "0-4096,8192-12288"},
                                 {"cause", "link_lost"},
                                 {"status", "0x00000000"},
                                 {"certain", true},
                                 {"not_logged", 0}});
  CHECK(lines[1].at("ranges") == "unknown");
  CHECK(lines[1].at("certain") == false);
  CHECK(lines[2] == json::object{{"level", "warn"},
                                 {"event", "promise_reported"},
                                 {"file", "SHARE\\robbed"},
                                 {"client", "10.0.0.1"},
                                 {"server", "10.0.2.2"},
                                 {"ranges", "0-4096,8192-12288"},
                                 {"cause", "link_lost"},
                                 {"how", "next_open"},
                                 {"not_logged", 0}});
  CHECK(lines[3].at("server") == "10.0.2.2");
}

TEST_CASE("each of the files that one failure can leave behind has its line") {
  const auto lines = logged([](LossLog& log) {
    for (std::size_t n = 0; n < modules::kMostLostFiles; ++n)
      log.reported({.file = robbed(), .how = "next_open", .at = {}});
  });
  CHECK(lines.size() == modules::kMostLostFiles);
}

}  // namespace longhaul
