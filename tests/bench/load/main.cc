// SPDX-License-Identifier: Apache-2.0
// Loads for the benchmarks, where Python would be too slow: one program, the first word says which.
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "loads.h"
#include "sockets.h"

int main(int count, char** words) {
  static const std::map<std::string, void (*)(const bench::Words&)> kLoads = {
      {"sink", bench::sink},     {"echo", bench::echo},         {"stall", bench::stall},
      {"source", bench::source}, {"connects", bench::connects}, {"exchanges", bench::exchanges},
      {"hold", bench::hold},     {"blocks", bench::blocks},     {"lock_step", bench::lock_step}};
  auto load = count > 1 ? kLoads.find(words[1]) : kLoads.end();
  if (load == kLoads.end()) {
    std::fputs("bench_load: the first word is one of", stderr);
    for (const auto& [name, run] : kLoads) std::fprintf(stderr, " %s", name.c_str());
    std::fputs("; the others are NAME=VALUE\n", stderr);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  bench::allow_many_descriptors();
  try {
    load->second(bench::Words(count - 2, words + 2));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_load %s: %s\n", words[1], error.what());
    return 1;
  }
  return 0;
}
