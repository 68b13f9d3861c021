// SPDX-License-Identifier: Apache-2.0
// The settings that a user may type, and their effect on the line.
#include "tools/wan/settings.h"

#include <catch2/catch.hpp>

#include "tools/wan/units.h"

using namespace longhaul::wan;
using namespace std::chrono_literals;

namespace {

LineSettings with(std::initializer_list<std::pair<const char*, const char*>> assignments) {
  LineSettings settings;
  for (const auto& [name, value] : assignments) {
    INFO(name << "=" << value);
    REQUIRE(apply(settings, name, value) == std::nullopt);
  }
  return settings;
}

}  // namespace

TEST_CASE("rates, times, shares and sizes are parsed with their units") {
  CHECK(*parse_rate("51.84mbit") == 51'840'000);
  CHECK(*parse_rate("64kbit") == 64'000);
  CHECK(*parse_rate("64K") == 64'000);
  CHECK(*parse_rate("1gbit") == 1'000'000'000);
  CHECK(*parse_rate("unlimited") == 0);
  CHECK(*parse_duration("50ms") == 50ms);
  CHECK(*parse_duration("1.5s") == 1500ms);
  CHECK(*parse_duration("0") == 0ms);
  CHECK(*parse_share("0.01") == 0.01);
  CHECK(*parse_share("5%") == Approx(0.05));
  CHECK(*parse_bytes("64KiB") == 65'536);
  CHECK(*parse_bytes("1500") == 1500);
}

TEST_CASE("a value without a number and a valid unit is refused with a sentence") {
  for (const char* text : {"", "x", "-1mbit", "nan", "inf", "10", "10ms", "0mbit", "20gbit", "1e999mbit"}) {
    INFO(text);
    REQUIRE(parse_rate(text).has_error());
    CHECK_FALSE(parse_rate(text).error().empty());
  }
  for (const char* text : {"", "5", "-1ms", "11s", "50 ms", "ms"}) CHECK(parse_duration(text).has_error());
  for (const char* text : {"", "2", "101%", "-0.1", "0.5x"}) CHECK(parse_share(text).has_error());
  for (const char* text : {"", "-5", "5 apples"}) CHECK(parse_bytes(text).has_error());
}

TEST_CASE("a setting applies to both directions, a prefixed one to its own") {
  const LineSettings settings =
      with({{"rate", "10mbit"}, {"delay", "50ms"}, {"b-to-a-rate", "1mbit"}, {"a-to-b-loss", "1%"}});
  CHECK(settings.a_to_b.line.rate_bits == 10'000'000);
  CHECK(settings.b_to_a.line.rate_bits == 1'000'000);
  CHECK(settings.b_to_a.line.delay == 50ms);
  CHECK(settings.a_to_b.line.loss == Approx(0.01));
  CHECK(settings.b_to_a.line.loss == 0);
}

TEST_CASE("the default queue is 64 KiB or one round trip at the rate, whichever is more") {
  CHECK(resolve(with({{"rate", "64kbit"}, {"delay", "50ms"}})).a_to_b.queue_bytes == 65'536);
  CHECK(resolve(with({{"rate", "51.84mbit"}, {"delay", "50ms"}})).a_to_b.queue_bytes == 648'000);
  // The round trip of a lopsided line is both its delays.
  CHECK(resolve(with({{"rate", "80mbit"}, {"a-to-b-delay", "100ms"}})).a_to_b.queue_bytes == 1'000'000);
  CHECK(resolve(with({{"rate", "80mbit"}, {"a-to-b-delay", "100ms"}})).b_to_a.queue_bytes == 1'000'000);
}

TEST_CASE("a queue may be set in bytes, in time, and in round trips") {
  const auto queue = [](const char* text) {
    return resolve(with({{"rate", "8mbit"}, {"delay", "50ms"}, {"queue", text}})).a_to_b.queue_bytes;
  };
  CHECK(queue("64KiB") == 65'536);
  CHECK(queue("1500") == 1500);
  CHECK(queue("20ms") == 20'000);
  CHECK(queue("1bdp") == 100'000);
  CHECK(queue("2bdp") == 200'000);
  CHECK(queue("0.5bdp") == 50'000);
  CHECK(queue("1us") == 3000);  // two large packets at least
  CHECK(queue("auto") == 100'000);
}

TEST_CASE("burst loss and reordering accept all their parameters") {
  const LineConfig line = resolve(with({{"burst-loss", "0.001,0.25"}, {"reorder", "1%,7ms"}}));
  REQUIRE(line.a_to_b.burst_loss);
  CHECK(line.a_to_b.burst_loss->enter == 0.001);
  CHECK(line.a_to_b.burst_loss->leave == 0.25);
  CHECK(line.a_to_b.burst_loss->loss_bad == 1);
  CHECK(line.a_to_b.burst_loss->loss_good == 0);
  CHECK(line.a_to_b.reorder_by == 7ms);
  CHECK(resolve(with({{"burst-loss", "0.001,0.25,50%,0.01"}})).a_to_b.burst_loss->loss_bad == 0.5);
  CHECK_FALSE(resolve(with({{"burst-loss", "0.001,0.25"}, {"burst-loss", "off"}})).a_to_b.burst_loss);
  // Held back for four large packets of this slow line, so that later ones do pass it.
  CHECK(resolve(with({{"rate", "1.2mbit"}, {"reorder", "1%"}})).a_to_b.reorder_by == 40ms);
}

TEST_CASE("an invalid setting changes nothing, not even in one direction") {
  LineSettings settings = with({{"rate", "10mbit"}});
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"rate", "fast"},
                                                                  {"speed", "10mbit"},
                                                                  {"loss", "1.5"},
                                                                  {"burst-loss", "0.1"},
                                                                  {"burst-loss", "0.1,0"},
                                                                  {"queue", "5 apples"},
                                                                  {"reorder", "1%,2ms,3"},
                                                                  {"a-to-b-", "1"},
                                                                  {"seed", "x"}}) {
    INFO(name << "=" << value);
    const auto error = apply(settings, name, value);
    REQUIRE(error);
    CHECK_FALSE(error->empty());
    CHECK(settings.a_to_b.line.rate_bits == 10'000'000);
    CHECK_FALSE(settings.a_to_b.line.burst_loss);
  }
}

TEST_CASE("queue management, ECN, policer and cut are settings of a direction") {
  const LineConfig line = resolve(with({{"ecn", "on"},
                                        {"aqm", "fq_codel,10ms,200ms"},
                                        {"b-to-a-aqm", "pie,20ms"},
                                        {"a-to-b-policer", "20mbit,64KiB"},
                                        {"b-to-a-cut", "on"}}));
  CHECK(line.a_to_b.aqm == AqmConfig{AqmConfig::Kind::fq_codel, 10ms, 200ms, true});
  CHECK(line.b_to_a.aqm == AqmConfig{AqmConfig::Kind::pie, 20ms, 0ms, true});
  REQUIRE(line.a_to_b.policer);
  CHECK(line.a_to_b.policer->rate_bits == 20'000'000);
  CHECK(line.a_to_b.policer->burst_bytes == 65'536);
  CHECK_FALSE(line.b_to_a.policer);
  CHECK(line.b_to_a.cut);
  CHECK_FALSE(line.a_to_b.cut);
  const LineConfig off = resolve(with({{"aqm", "red"}, {"aqm", "off"}, {"policer", "off"}, {"cut", "off"}}));
  CHECK_FALSE(off.a_to_b.aqm);
}

TEST_CASE("a wrong queue management, policer or switch is refused with a sentence") {
  LineSettings settings;
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"aqm", "sfq"},
                                                                  {"aqm", "codel,0"},
                                                                  {"aqm", "codel,5"},
                                                                  {"aqm", "pie,15ms,1ms"},
                                                                  {"aqm", "red,5ms"},
                                                                  {"aqm", ""},
                                                                  {"ecn", "yes"},
                                                                  {"policer", "20mbit"},
                                                                  {"policer", "unlimited,64KiB"},
                                                                  {"policer", "20mbit,100"},
                                                                  {"cut", "1"}}) {
    INFO(name << "=" << value);
    const auto error = apply(settings, name, value);
    REQUIRE(error);
    CHECK_FALSE(error->empty());
  }
}
