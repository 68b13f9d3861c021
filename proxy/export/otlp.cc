// SPDX-License-Identifier: Apache-2.0
// The JSON encoding follows protobuf: 64-bit numbers are texts, and enumerations are numbers.
#include "proxy/export/otlp.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <utility>

namespace longhaul::exporting {
namespace {

namespace json = boost::json;

constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE

json::string nanoseconds(std::chrono::system_clock::time_point time) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return json::string(std::to_string(std::max<decltype(since)>(since, 0)));
}

json::object attribute(std::string_view key, std::string_view value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

// The UCUM unit, if the name contains a unit.
std::string_view unit_of(std::string_view name) {
  if (name.ends_with("_total")) name.remove_suffix(6);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kUnits{
      {{"_bytes", "By"}, {"_seconds", "s"}, {"_bits", "bit/s"}, {"_ratio", "1"}}};
  for (const auto& [ending, unit] : kUnits)
    if (name.ends_with(ending)) return unit;
  return "";
}

json::object metric_of(const prometheus::MetricFamily& family, const json::string& started, const json::string& now) {
  const bool counts = family.type == prometheus::MetricType::Counter;
  json::array points;
  for (const auto& metric : family.metric) {
    json::array attributes;
    for (const auto& label : metric.label) attributes.push_back(attribute(label.name, label.value));
    json::object point{{"attributes", std::move(attributes)},
                       {"timeUnixNano", now},
                       {"asDouble", counts ? metric.counter.value : metric.gauge.value}};
    if (counts) point["startTimeUnixNano"] = started;
    points.push_back(std::move(point));
  }
  json::object object{{"name", family.name}, {"description", family.help}};
  if (const auto unit = unit_of(family.name); !unit.empty()) object["unit"] = unit;
  if (counts)
    object["sum"] = {{"dataPoints", std::move(points)}, {"aggregationTemporality", kCumulative}, {"isMonotonic", true}};
  else
    object["gauge"] = {{"dataPoints", std::move(points)}};
  return object;
}

}  // namespace

std::string otlp_request(const control::Families& families, const OtlpSource& source,
                         std::chrono::system_clock::time_point now) {
  const json::string started = nanoseconds(source.started), at = nanoseconds(now);
  json::array metrics;
  for (const auto& family : families.all())
    if (!family.metric.empty()) metrics.push_back(metric_of(family, started, at));
  const json::array resource{attribute("service.name", "longhaul"), attribute("service.instance.id", source.site),
                             attribute("service.version", source.version)};
  const json::object request{
      {"resourceMetrics",
       {{{"resource", {{"attributes", resource}}},
         {"scopeMetrics",
          {{{"scope", {{"name", "longhaul"}, {"version", source.version}}}, {"metrics", std::move(metrics)}}}}}}}};
  return json::serialize(request);
}

OtlpAnswer read_otlp_answer(std::string_view body) {
  OtlpAnswer answer;
  boost::system::error_code error;
  const json::value parsed = json::parse(body, error);
  if (error || !parsed.is_object()) return answer;
  const json::value* partial = parsed.get_object().if_contains("partialSuccess");
  if (!partial || !partial->is_object()) return answer;
  if (const json::value* points = partial->get_object().if_contains("rejectedDataPoints")) {
    if (points->is_string()) {
      const auto& text = points->get_string();
      std::from_chars(text.data(), text.data() + text.size(), answer.rejected_points);
    } else if (points->is_int64() && points->get_int64() > 0) {
      answer.rejected_points = static_cast<std::uint64_t>(points->get_int64());
    }
  }
  if (const json::value* message = partial->get_object().if_contains("errorMessage"))
    if (message->is_string()) answer.message = message->get_string();
  return answer;
}

}  // namespace longhaul::exporting
