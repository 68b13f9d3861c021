// SPDX-License-Identifier: Apache-2.0
// The command line: what ttcp's users know, and the sweep's. Leaves doing it to main.cc.
#pragma once

#include "cli11.h"
#include "tools/ttcp/plain.h"
#include "tools/ttcp/serve.h"
#include "tools/ttcp/sweep.h"

namespace longhaul::ttcp {

struct SweepWords {
  SweepOptions sweep;
  PlanOptions plan;
  Groups groups{Column::Group::source};
  std::string text_file;
  std::string csv_file;
  std::string json_file;
  bool force = false;
  bool quiet = false;
};

struct PlotWords {
  std::string file;
  std::string folder;
};

// Each gives what finishes its options after parsing; it throws CLI::ValidationError.
using Finish = std::function<void()>;
Finish add_plain(CLI::App& app, PlainOptions& options);
Finish add_serve(CLI::App& serve, ServeOptions& options);
Finish add_sweep(CLI::App& sweep, SweepWords& words);
void add_plot(CLI::App& plot, PlotWords& words);

boost::json::object to_json(const SweepWords& words);

}  // namespace longhaul::ttcp
