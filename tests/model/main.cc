// SPDX-License-Identifier: Apache-2.0
// Explores every case of cases.h and compares what is found with what must be. The way to a broken rule is
// printed as numbered steps: for all that were not expected, and for those whose sentence contains the words
// given.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tests/model/cases.h"

namespace {

using longhaul::model::Case;
using longhaul::model::End;
using longhaul::model::Extent;
using longhaul::model::Result;

bool as_expected(const Case& each, const Result& result) {
  if (result.end == End::too_many_states) return false;
  if (!each.breaks) return result.end == End::holds;
  return result.end == End::breaks && result.broken.find(each.breaks) != std::string::npos;
}

void print_steps(const Result& result) {
  for (std::size_t i = 0; i < result.steps.size(); ++i)
    std::printf("    %2zu. %s\n", i + 1, result.steps[i].c_str());
}

}  // namespace

int main(int count, char** arguments) {
  Extent extent = Extent::small;
  std::vector<std::string> words;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--long") == 0) {
      extent = Extent::large;
    } else if (arguments[i][0] == '-') {
      std::fprintf(
          stderr,
          "usage: %s [--long] [WORDS]\n  the cases whose sentence has all of the words, with their steps\n",
          arguments[0]);
      return 2;
    } else {
      words.emplace_back(arguments[i]);
    }
  }
  const std::size_t most_states = extent == Extent::large ? 40'000'000 : 1'000'000;
  std::vector<Case> cases = longhaul::model::write_cases(extent);
  for (Case& each : longhaul::model::further_cases(extent)) cases.push_back(std::move(each));
  for (Case& each : longhaul::model::read_cases(extent)) cases.push_back(std::move(each));

  int failed = 0;
  for (const Case& each : cases) {
    const auto has = [&](const std::string& word) { return each.sentence.find(word) != std::string::npos; };
    if (!std::all_of(words.begin(), words.end(), has)) continue;
    const auto began = std::chrono::steady_clock::now();
    const Result result = each.run(most_states);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const bool good = as_expected(each, result);
    failed += good ? 0 : 1;
    const std::string found = result.end == End::holds    ? "holds"
                              : result.end == End::breaks ? "breaks: " + result.broken
                                                          : "not explored to the end";
    std::printf("%s %s\n       %s (%zu states, %.2f s)\n", good ? "ok    " : "FAILED", each.sentence.c_str(),
                found.c_str(), result.states, took.count());
    if (!good || !words.empty()) print_steps(result);
    std::fflush(stdout);
  }
  std::printf("%d not as expected\n", failed);
  return failed == 0 ? 0 : 1;
}
