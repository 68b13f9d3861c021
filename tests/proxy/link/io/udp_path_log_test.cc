// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_path_log.h"

#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch.hpp>
#include <functional>
#include <sstream>

#include "proxy/log/log.h"

using longhaul::link::udp::UdpPathLog;

namespace {

// How many events are logged while `what` is done.
std::size_t events_of(const std::function<void()>& what) {
  std::stringstream text;
  {
    const longhaul::log::Session session({}, std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
    what();
  }
  std::size_t events = 0;
  for (std::string line; std::getline(text, line);) ++events;
  return events;
}

}  // namespace

TEST_CASE("a change of the carrier is logged once, and the first one of a session is no change") {
  UdpPathLog log("branch");
  CHECK(events_of([&] { log.carried_by("tcp", "why"); }) == 0);
  CHECK(events_of([&] { log.carried_by("udp", "why"); }) == 1);
  CHECK(events_of([&] { log.carried_by("udp", "why"); }) == 0);
  CHECK(events_of([&] { log.carried_by("tcp", "why"); }) == 1);
  log.session_ends();
  CHECK(events_of([&] { log.carried_by("udp", "why"); }) == 0);
}

TEST_CASE("a line is logged when it begins or stops to work") {
  using State = UdpPathLog::LineState;
  UdpPathLog log("branch");
  CHECK(events_of([&] { log.line_is(2, "dsl", State::unused); }) == 0);
  CHECK(events_of([&] { log.line_is(2, "dsl", State::works); }) == 1);
  CHECK(events_of([&] { log.line_is(1, "lte", State::works); }) == 1);
  CHECK(events_of([&] { log.line_is(2, "dsl", State::works); }) == 0);
  CHECK(events_of([&] { log.line_is(2, "dsl", State::silent); }) == 1);
  CHECK(events_of([&] { log.line_is(2, "dsl", State::unused); }) == 0);
}

TEST_CASE("the line that carries is logged when it changes, unless it has no name") {
  UdpPathLog log("branch");
  CHECK(events_of([&] { log.carried_on(0, "", "why"); }) == 0);
  CHECK(events_of([&] { log.carried_on(1, "dsl", "why"); }) == 1);
  CHECK(events_of([&] { log.carried_on(1, "dsl", "why"); }) == 0);
  log.session_ends();
  CHECK(events_of([&] { log.carried_on(1, "dsl", "why"); }) == 1);
}

TEST_CASE("dropped bursts are logged once") {
  UdpPathLog log("branch");
  CHECK(events_of([&] {
          log.bursts_dropped();
          log.bursts_dropped();
        }) == 1);
}
