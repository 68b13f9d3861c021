// SPDX-License-Identifier: Apache-2.0
#include "proxy/export/otlp.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <limits>

namespace longhaul::exporting {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::system_clock::time_point;

const OtlpSource kSource{"branch", "1.2.3", Time(1'700'000'000s)};

}  // namespace

TEST_CASE("OTLP: counters become cumulative sums and gauges stay gauges") {
  control::Families families;
  families.counter("flow_bytes_total", "Bytes.").sample({{"side", "lan"}, {"direction", "in"}}, std::uint64_t{1'000'000});
  families.gauge("queue_seconds", "Queue.").sample({}, 0.25);
  (void)families.gauge("nothing", "Without a sample.");
  CHECK(otlp_request(families, kSource, Time(1'700'000'060s)) ==
        R"({"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"longhaul"}},)"
        R"({"key":"service.instance.id","value":{"stringValue":"branch"}},)"
        R"({"key":"service.version","value":{"stringValue":"1.2.3"}}]},)"
        R"("scopeMetrics":[{"scope":{"name":"longhaul","version":"1.2.3"},"metrics":[)"
        R"({"name":"longhaul_flow_bytes_total","description":"Bytes.","unit":"By","sum":{"dataPoints":[{"attributes":[)"
        R"({"key":"side","value":{"stringValue":"lan"}},{"key":"direction","value":{"stringValue":"in"}}],)"
        R"("timeUnixNano":"1700000060000000000","asDouble":1E6,"startTimeUnixNano":"1700000000000000000"}],)"
        R"("aggregationTemporality":2,"isMonotonic":true}},)"
        R"({"name":"longhaul_queue_seconds","description":"Queue.","unit":"s","gauge":{"dataPoints":[)"
        R"({"attributes":[],"timeUnixNano":"1700000060000000000","asDouble":2.5E-1}]}}]}]}]})");
}

TEST_CASE("OTLP: labels are text, whatever they hold") {
  control::Families families;
  families.gauge("x", "").sample({{"peer", "a\"b\\c\n\x01"}}, 1.0);
  const auto request = boost::json::parse(otlp_request(families, kSource, {}));
  const auto& metric = request.at("resourceMetrics").at(0).at("scopeMetrics").at(0).at("metrics").at(0);
  CHECK(metric.at("gauge").at("dataPoints").at(0).at("attributes").at(0).at("value").at("stringValue").as_string() == "a\"b\\c\n\x01");
}

TEST_CASE("OTLP: what a collector rejected is read from its answer, and nothing else is an error") {
  CHECK(read_otlp_answer(R"({"partialSuccess":{"rejectedDataPoints":"7","errorMessage":"too old"}})").rejected_points == 7);
  CHECK(read_otlp_answer(R"({"partialSuccess":{"rejectedDataPoints":"7","errorMessage":"too old"}})").message == "too old");
  CHECK(read_otlp_answer(R"({"partialSuccess":{"rejectedDataPoints":3}})").rejected_points == 3);
  for (const char* body : {"", "{}", "[]", "<html>", R"({"partialSuccess":{}})", R"({"partialSuccess":7})",
                           R"({"partialSuccess":{"rejectedDataPoints":-3,"errorMessage":[]}})",
                           R"({"partialSuccess":{"rejectedDataPoints":"x"}})"}) {
    CHECK(read_otlp_answer(body).rejected_points == 0);
    CHECK(read_otlp_answer(body).message.empty());
  }
}

}  // namespace longhaul::exporting
