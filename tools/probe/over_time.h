// SPDX-License-Identifier: Apache-2.0
// How each link's capacity, delay and loss went over several measurements of a path: pure. Leaves what one
// measurement says to path_report.h.
#pragma once
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tools/probe/sweep.h"

namespace longhaul::probe {

class OverTime {
 public:
  void add(const Path& path, const std::string& time);
  void add_failure(const std::string& time);  // the path could not be measured then

  std::size_t measurements() const { return measurements_; }  // failed ones, too
  void print(std::ostream& out) const;

 private:
  struct Rate {
    double bits = 0;
    bool is_least = false;  // it was faster than this could be told
  };
  struct Samples {
    std::string address;  // of its far end, when it was seen last
    std::vector<Rate> rates;
    std::vector<double> delays_ms, losses;  // share of the packets
  };

  void begin(const std::string& time);

  std::map<std::pair<unsigned, unsigned>, Samples> links_;  // by the hops at their ends
  std::size_t measurements_ = 0, failures_ = 0;
  std::string first_time_, last_time_;
};

}  // namespace longhaul::probe
