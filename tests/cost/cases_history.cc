// SPDX-License-Identifier: Apache-2.0
// What the status page's history costs a daemon that many flows pass: once a second the flows are walked and
// a sample is added; every five minutes the rings are made a file's content.
#include <algorithm>
#include <cstdlib>

#include "cost/cases.h"
#include "cost/counter.h"
#include "proxy/control/history.h"
#include "proxy/flows/byte_walk.h"

namespace longhaul::cost {
namespace {

flows::FlowTable table_with(std::size_t size) {
  flows::FlowTable table;
  const Uncounted making;
  for (std::size_t i = 0; i < size; ++i) table.add({}).bytes = {i, i, i, i};
  return table;
}

std::uint64_t traffic_is_sampled(std::size_t size) {
  const flows::FlowTable table = table_with(size);
  flows::ByteWalk walk;
  std::uint64_t longest = 0;
  walk.begin(table);
  for (bool complete = false; !complete;) {
    const std::uint64_t before = steps();
    complete = walk.turn(table);
    longest = std::max(longest, steps() - before);
  }
  if (walk.sum().lan_in != size * (size - 1) / 2) std::abort();
  return longest;
}

// Of the seconds from now on, the dearest: those that begin a minute or an hour, and a clock that was set to
// another year.
std::uint64_t samples_are_added(std::size_t size) {
  control::History history;
  std::uint64_t longest = 0, now = 1'800'000'000;
  for (std::size_t i = 0; i < size; ++i) {
    now += i == size / 2 ? 100'000'000 : 1;
    const std::uint64_t before = steps();
    history.add(now, {.bytes = {1, 2, 3, 4}, .most_flows = 5, .samples = 1});
    longest = std::max(longest, steps() - before);
  }
  return longest;
}

std::uint64_t the_file_is_made(std::size_t size) {
  control::History history;
  for (std::size_t i = 0; i < size; ++i)
    history.add(1'800'000'000 + i, {.bytes = {1, 2, 3, 4}, .most_flows = 5, .samples = 1});
  const std::uint64_t before = steps();
  if (history.text().size() > control::History::kMostBytes) std::abort();
  return steps() - before;
}

}  // namespace

const std::vector<TurnCase>& history_turn_cases() {
  static const std::vector<TurnCase> cases = {
      {"history: a turn of a sample, with 80,000 flows", 2'000, 80'000, traffic_is_sampled},
      {"history: a sample is added", 6'000, 8'000, samples_are_added},
      {"history: the content of its file", 1'200'000, 8'000, the_file_is_made},
  };
  return cases;
}

}  // namespace longhaul::cost
