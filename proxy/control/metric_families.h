// SPDX-License-Identifier: Apache-2.0
// Collects metric families for one scrape; prometheus-cpp writes them as text.
#pragma once
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace longhaul::control {

using MetricLabels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Families {
 public:
  class Family {
   public:
    explicit Family(prometheus::MetricFamily& family) : family_(family) {}
    Family& sample(MetricLabels labels, double value) {
      auto& metric = family_.metric.emplace_back();
      for (const auto& [name, text] : labels) metric.label.push_back({std::string(name), std::string(text)});
      (family_.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
      return *this;
    }
    Family& sample(MetricLabels labels, std::uint64_t value) {
      return sample(labels, static_cast<double>(value));
    }

   private:
    prometheus::MetricFamily& family_;
  };

  Family gauge(std::string name, std::string help) {
    return add(std::move(name), std::move(help), prometheus::MetricType::Gauge);
  }
  Family counter(std::string name, std::string help) {
    return add(std::move(name), std::move(help), prometheus::MetricType::Counter);
  }
  const std::deque<prometheus::MetricFamily>& all() const { return families_; }
  std::string text() const {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    prometheus::TextSerializer{}.Serialize(out, {families_.begin(), families_.end()});
    return std::move(out).str();
  }

 private:
  Family add(std::string name, std::string help, prometheus::MetricType type) {
    return Family{families_.emplace_back(
        prometheus::MetricFamily{"longhaul_" + std::move(name), std::move(help), type, {}})};
  }
  std::deque<prometheus::MetricFamily> families_;  // a Family keeps a reference to one while others are added
};

}  // namespace longhaul::control
