// SPDX-License-Identifier: Apache-2.0
// See over_time.h.
#include "tools/probe/over_time.h"

#include <algorithm>

#include "tools/probe/path_report.h"
#include "tools/probe/table.h"

namespace longhaul::probe {

void OverTime::begin(const std::string& time) {
  if (measurements_++ == 0) first_time_ = time;
  last_time_ = time;
}

void OverTime::add(const Path& path, const std::string& time) {
  begin(time);
  for (const Link& link : path.links) {
    Samples& samples = links_[{link.from, link.to}];
    samples.address = where_text(path.hops, link.to);
    const Capacity& there = link.fit.there;
    samples.rates.push_back({there.bits_per_second.value_or(there.low), !there.bits_per_second});
    samples.delays_ms.push_back(link.fit.delay_us / 1000);
    samples.losses.push_back(link.loss.value);
  }
}

void OverTime::add_failure(const std::string& time) {
  begin(time);
  ++failures_;
}

void OverTime::print(std::ostream& out) const {
  out << "\nover " << measurements_ << " measurements, " << first_time_ << " to " << last_time_;
  if (failures_ > 0) out << ", of which " << failures_ << " failed";
  out << "\n\n";
  std::vector<std::vector<std::string>> rows{{"link to hop", "address", "measured", "capacity: least",
                                              "median", "most", "delay, ms: least", "most", "loss, %: most"}};
  for (const auto& [ends, samples] : links_) {
    std::vector<Rate> rates = samples.rates;
    std::sort(rates.begin(), rates.end(), [](const Rate& a, const Rate& b) {
      return a.bits != b.bits ? a.bits < b.bits : a.is_least < b.is_least;
    });
    const auto text = [](const Rate& rate) { return (rate.is_least ? "over " : "") + rate_text(rate.bits); };
    const auto [least, most] = std::minmax_element(samples.delays_ms.begin(), samples.delays_ms.end());
    const double worst = *std::max_element(samples.losses.begin(), samples.losses.end());
    rows.push_back({std::to_string(ends.second), samples.address, std::to_string(rates.size()),
                    text(rates.front()), text(rates[rates.size() / 2]), text(rates.back()), fixed(*least, 2),
                    fixed(*most, 2), fixed(100 * worst, 2)});
  }
  print_table(rows, out);
}

}  // namespace longhaul::probe
