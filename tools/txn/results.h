// SPDX-License-Identifier: Apache-2.0
// What the console makes of a row's times: figures, and how people and machines read them.
#pragma once
#include <boost/json/object.hpp>
#include <iosfwd>
#include <string>
#include <vector>

#include "tools/measuring/statistics.h"
#include "tools/txn/job.h"
#include "tools/txn/presets.h"

namespace longhaul::txn {

struct PairResult {
  std::string from;
  std::string to;
  Measured measured;  // all times
};

struct RowResult {
  Row row;
  std::vector<PairResult> pairs;
  bool interrupted = false;
  std::string trouble;  // empty: none
};

struct Figures {
  measuring::Summary response_ms;  // of all pairs' transactions
  std::uint64_t transactions = 0;
  double seconds = 0;              // of the pair that took longest
  double megabits_per_second = 0;  // the file's bytes alone, of all pairs together
  double transactions_per_second = 0;
  Counts counts;
};
Figures figures_of(const std::vector<PairResult>& pairs, const Workload& workload);

void print_table(const std::vector<RowResult>& results, std::ostream& out);
void print_csv(const std::vector<RowResult>& results, std::ostream& out);
boost::json::object to_json(const std::vector<RowResult>& results);

std::string short_name(const Row& row);  // "FILETRANSF-LONG tcp, 10 pairs"

}  // namespace longhaul::txn
