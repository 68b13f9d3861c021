// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/refusal_log.h"

#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch.hpp>
#include <functional>
#include <sstream>

#include "proxy/log/log.h"

using namespace longhaul;
using namespace std::chrono_literals;
using link::Refusal;
using link::RefusalLog;

namespace {

// The lines that are written while `what` is done.
std::vector<std::string> lines_of(const std::function<void()>& what) {
  std::stringstream text;
  {
    const log::Session session({}, std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
    what();
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

boost::asio::ip::tcp::endpoint stranger_at(const std::string& address, std::uint16_t port = 4000) {
  return {boost::asio::ip::make_address(address), port};
}

const auto kRefusedAt = link::TimePoint(1h);

}  // namespace

TEST_CASE("each refusal is counted, and a source is logged once a minute with the count of the others") {
  RefusalLog refusals;
  const auto lines = lines_of([&] {
    for (int second = 0; second <= 60; ++second)
      for (const char* address : {"10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::2"})
        refusals.refused(stranger_at(address), Refusal::unknown_key, "sha256:x", kRefusedAt + second * 1s);
  });
  CHECK(refusals.counts()[static_cast<std::size_t>(Refusal::unknown_key)] == 61 * 4);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].find("link_refused address=10.0.0.1:4000 code=unknown_key") != std::string::npos);
  CHECK(lines[0].find("sha256:x") != std::string::npos);
  CHECK(lines[0].find("run `longhaul reload`") != std::string::npos);
  CHECK(lines[1].find("address=[2001:db8::1]:4000") != std::string::npos);
  CHECK(lines[2].find("unlogged_of_source=119") != std::string::npos);
}

TEST_CASE("the log lines of thousands of sources are limited together") {
  RefusalLog refusals;
  const auto lines = lines_of([&] {
    for (int second = 0; second < 60; ++second)
      for (int number = 0; number < 200; ++number)
        refusals.refused(stranger_at("10." + std::to_string(second) + ".0." + std::to_string(number)),
                         Refusal::not_tls, "", kRefusedAt + second * 1s);
  });
  CHECK(lines.size() == 60 + 59);
  CHECK(lines.back().find("unlogged_of_others=199") != std::string::npos);
  CHECK(refusals.counts()[static_cast<std::size_t>(Refusal::not_tls)] == 60 * 200);
}

TEST_CASE("each refusal has its own row in the table") {
  for (std::size_t i = 0; i < link::kRefusalTable.size(); ++i)
    CHECK(static_cast<std::size_t>(link::kRefusalTable[i].refusal) == i);
}
