// SPDX-License-Identifier: Apache-2.0
// longhaul-ttcp: chooses what is done, and keeps and says what was measured however it ends. Leaves all work
// to the library beside it.
#include <boost/json/serialize.hpp>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "manuals/options.h"
#include "tools/ttcp/options.h"

namespace {

using namespace longhaul::ttcp;

constexpr int kInterrupted = 130;  // as a shell says it of SIGINT

void say(const std::string& sentence) { std::cerr << "longhaul-ttcp: " + sentence + "\n" << std::flush; }

std::string now_in_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void write_files(const SweepWords& words, const Report& report) {
  if (!words.text_file.empty()) write_file(words.text_file, to_text(report, words.groups));
  if (!words.csv_file.empty()) write_file(words.csv_file, to_csv(report));
  if (!words.json_file.empty()) write_file(words.json_file, boost::json::serialize(to_json(report)) + "\n");
}

std::string files_of(const SweepWords& words) {
  std::string names;
  for (const std::string& name : {words.text_file, words.csv_file, words.json_file})
    if (!name.empty()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

void say_row(const Report& report) {
  const Line line = line_of(report.rows.back());
  const auto value = [&](std::string_view name) {
    for (std::size_t i = 0; i < columns().size(); ++i)
      if (columns()[i].name == name) return line.values[i];
    return 0.;
  };
  char text[200];
  std::snprintf(text, sizeof text,
                "%zu/%zu  trial %s  %s  %.0f bytes: %.3f Mbit/s, %.2f %% received in %.3f s",
                report.rows.size(), report.planned, line.trial.c_str(), line.protocol.c_str(),
                value("packet_bytes"), value("mbit_per_second"), value("percent_received"), value("seconds"));
  std::cerr << text << (line.ended_by == "silence" ? " (end marks lost)" : "") << std::endl;
}

// The most likely reason is worth a sentence; the table alone looks like a broken tool.
void say_if_udp_is_filtered(const Report& report) {
  bool udp_was_sent = false;
  for (const Row& row : report.rows) {
    if (is_udp(row.test.kind) && row.packets_received > 0) return;
    udp_was_sent |= is_udp(row.test.kind);
  }
  if (udp_was_sent)
    say("no UDP packet arrived, although the control connection works: a device on the path filters UDP; "
        "`serve -p PORT` uses a single port that a firewall can allow");
}

int sweep(const SweepWords& words, const Stop& stop) {
  for (const std::string& name : {words.text_file, words.csv_file, words.json_file})
    if (!words.force && !name.empty() && std::filesystem::exists(name))
      throw longhaul::measuring::Trouble(name + " already exists; --force overwrites it");
  const auto plan = make_plan(words.plan);
  Report report;
  report.began = now_in_utc();
  report.options = to_json(words);
  report.planned = plan.size();
  int code = 0;
  bool is_connected = false;
  try {
    run_sweep(plan, words.sweep, report, stop, [&](const Report& so_far) {
      is_connected = true;
      write_files(words, so_far);
      if (!words.quiet) say_row(so_far);
    });
  } catch (const Interrupted&) {
    report.note = "interrupted";
    code = kInterrupted;
  } catch (const std::exception& error) {
    if (!is_connected) throw;
    report.note = error.what();
    code = 1;
  }
  if (!report.rows.empty()) {
    write_files(words, report);
    std::cout << to_aligned(report, words.groups) << std::flush;
  }
  say_if_udp_is_filtered(report);
  if (code == 0) return 0;
  const std::string files = report.rows.empty() ? "" : files_of(words);
  say(report.note + " after " + std::to_string(report.rows.size()) + " of " + std::to_string(plan.size()) +
      " tests" +
      (report.rows.empty() ? ""
       : files.empty()     ? "; their means are above"
                           : "; they are in " + files));
  return code;
}

// Python draws, since nothing here can; it replaces this process.
[[noreturn]] void plot(const PlotWords& words) {
  const std::string script =
      std::filesystem::canonical("/proc/self/exe").parent_path() / "longhaul-ttcp-plot";
  std::vector<const char*> arguments{script.c_str(), words.file.c_str()};
  if (!words.folder.empty()) arguments.insert(arguments.end(), {"--out", words.folder.c_str()});
  arguments.push_back(nullptr);
  ::execv(script.c_str(), const_cast<char* const*>(arguments.data()));
  throw longhaul::measuring::Trouble("cannot run " + script + ": " + std::generic_category().message(errno));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"ttcp, and sweeps over packet sizes: TCP and UDP throughput to another host at each size."};
  app.require_subcommand(0, 1);
  app.footer(
      "For a sweep, run `longhaul-ttcp serve` on one host and `longhaul-ttcp sweep HOST -F results.txt` on "
      "another.");
  PlainOptions plain_options;
  ServeOptions serve_options;
  SweepWords sweep_words;
  PlotWords plot_words;
  const Finish finish_plain = add_plain(app, plain_options);
  CLI::App* serve_command = app.add_subcommand("serve", "run the receiving end for sweeps until Ctrl-C");
  const Finish finish_serve = add_serve(*serve_command, serve_options);
  CLI::App* sweep_command =
      app.add_subcommand("sweep", "measure TCP and UDP at every size, in several trials, unattended");
  const Finish finish_sweep = add_sweep(*sweep_command, sweep_words);
  CLI::App* plot_command = app.add_subcommand("plot", "draw the results of a sweep");
  add_plot(*plot_command, plot_words);
  longhaul::manuals::add_options(app, "longhaul-ttcp");
  Stop stop;
  try {
    app.parse(argc, argv);
    if (*plot_command) plot(plot_words);
    ::signal(SIGPIPE, SIG_IGN);
    stop_on_signals(stop);
    if (*serve_command) {
      finish_serve();
      try {
        serve(serve_options, stop);
      } catch (const Interrupted&) {  // how it is ended
      }
      return 0;
    }
    if (*sweep_command) {
      finish_sweep();
      return sweep(sweep_words, stop);
    }
    finish_plain();
    run_plain(plain_options, stop);
    return 0;
  } catch (const Interrupted&) {
    return kInterrupted;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
}
