// SPDX-License-Identifier: Apache-2.0
// The command line of longhaul-txn. Leaves all work to the library beside it.
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "cli11.h"
#include "manuals/options.h"
#include "tools/measuring/trouble.h"
#include "tools/txn/agent.h"
#include "tools/txn/console.h"
#include "tools/txn/protocol.h"

namespace {

using namespace longhaul::txn;
using longhaul::measuring::Trouble;

constexpr int kInterrupted = 130;  // as a shell says of SIGINT
constexpr double kPresetSeconds = 20;

struct RunOptions {
  std::vector<std::string> from;
  std::vector<std::string> to;
  std::vector<std::string> data_addresses;
  std::string preset;
  bool list_presets = false;
  std::string script = "EFT-SHORT";
  std::vector<std::string> protocols{"tcp"};
  std::uint32_t file_bytes = 0;
  std::uint32_t send_buffer = 0;
  std::uint32_t window_bytes = 0;
  std::uint32_t mtu = 0;
  std::string calls = "blocking";
  bool no_delay = false;
  bool same_content = false;
  std::uint32_t transactions = 0;
  double seconds = 0;
  double retransmit_after_ms = 0;
  double patience_seconds = 30;
  unsigned pairs = 1;
  std::uint16_t data_port = 0;
  std::string json;
  std::string csv;
  bool quiet = false;
};

void add_token(CLI::App* command, std::string& file) {
  command->add_option("--token-file", file,
                      "file whose first line is a secret that both sides must have; or use LONGHAUL_TOKEN")
      ->type_name("FILE");
}

std::string read_token(const std::string& file) {
  if (file.empty()) {
    const char* token = std::getenv("LONGHAUL_TOKEN");
    return token ? token : "";
  }
  std::ifstream in{file};
  std::string token;
  if (!std::getline(in, token) || token.empty()) throw Trouble("no token found in " + file);
  return token;
}

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "run a measurement between agents and print the results");
  run->add_option("--from", options.from,
                  "agent that drives the transactions, HOST[:PORT]; repeat for more pairs");
  run->add_option("--to", options.to, "agent that serves them");
  run->add_option(
      "--data-address", options.data_addresses,
      "address at which the --from agent reaches the --to agent, if it differs from the address in --to");
  run->add_option("--data-port", options.data_port,
                  "data port of the first pair, others follow (default: dynamic)");
  run->add_option("--pairs", options.pairs, "number of parallel pairs between the same agents")
      ->check(CLI::Range(1, 200))
      ->capture_default_str();
  run->add_option("--preset", options.preset,
                  "run a published experiment; the options below change all its rows");
  run->add_flag("--list-presets", options.list_presets, "list the presets");
  run->add_option("--script", options.script, "EFT-SHORT, EFT-LONG or FILETRANSF-LONG")
      ->capture_default_str();
  run->add_option("--over", options.protocols, "tcp, udp or both")->delimiter(',')->capture_default_str();
  run->add_option("--file", options.file_bytes,
                  "bytes of one transaction (default: the script's, 100 or 1460000)");
  run->add_option("--send-buffer", options.send_buffer,
                  "bytes given to one send call; over UDP one datagram (default: 32767, UDP 8863)");
  run->add_option("--window", options.window_bytes,
                  "TCP: maximum advertised window (default: the kernel's); UDP: bytes sent before waiting "
                  "for an acknowledgement "
                  "(default: 17726)");
  run->add_option("--mtu", options.mtu,
                  "maximum IP packet size (default: the path's; larger datagrams are fragmented)");
  run->add_option("--calls", options.calls, "blocking or non-blocking")->capture_default_str();
  run->add_flag("--no-delay", options.no_delay, "TCP: disable the Nagle algorithm");
  run->add_flag("--same-content", options.same_content, "send the same bytes in every transaction");
  run->add_option("--transactions", options.transactions,
                  "number of transactions of each pair (default: 1000, FILETRANSF-LONG 100)");
  run->add_option("--seconds", options.seconds,
                  "start no transaction after this time (default: no limit; presets: 20)")
      ->check(CLI::Range(0.001, 86'400.));
  run->add_option("--retransmit-after", options.retransmit_after_ms,
                  "UDP: retransmission time-out in milliseconds (default: from measured round trips)")
      ->check(CLI::Range(1., 86'400'000.));
  run->add_option("--patience", options.patience_seconds,
                  "seconds to wait for the other agent before the run fails")
      ->check(CLI::Range(0.1, 86'400.))
      ->capture_default_str();
  run->add_option("--json", options.json, "write all results to this file, - for standard output")
      ->type_name("FILE");
  run->add_option("--csv", options.csv, "write a line for each row of the table, - for standard output")
      ->type_name("FILE");
  run->add_flag("--quiet", options.quiet, "print no progress");
  return run;
}

std::chrono::milliseconds to_ms(double value) {
  return std::chrono::milliseconds{static_cast<std::int64_t>(value)};
}

std::vector<Row> rows_of(const RunOptions& options, const CLI::App& run) {
  std::vector<Row> rows;
  if (!options.preset.empty())
    rows = preset_of(options.preset).rows;
  else
    for (const std::string& protocol : options.protocols)
      rows.push_back({standard(script_of(options.script), protocol_of(protocol)), options.pairs});
  const auto given = [&](const char* name) { return run.count(name) > 0; };
  for (Row& row : rows) {
    Workload& workload = row.workload;
    if (given("--pairs")) row.pairs = options.pairs;
    if (given("--file")) workload.file_bytes = options.file_bytes;
    if (given("--send-buffer")) workload.send_buffer = options.send_buffer;
    if (given("--window")) workload.window_bytes = options.window_bytes;
    if (given("--mtu")) workload.mtu = options.mtu;
    if (given("--calls")) workload.calls = calls_of(options.calls);
    if (given("--transactions")) workload.transactions = options.transactions;
    if (options.no_delay) workload.no_delay = true;
    if (options.same_content) workload.content = Content::same;
    if (options.preset.size()) workload.longest = to_ms(kPresetSeconds * 1000);
    if (given("--seconds")) workload.longest = to_ms(options.seconds * 1000);
    workload.retransmit_after = to_ms(options.retransmit_after_ms);
    workload.patience = to_ms(options.patience_seconds * 1000);
    check(workload);
  }
  return rows;
}

ConsoleOptions console_of(const RunOptions& options, const std::string& token) {
  if (options.from.empty() || options.from.size() != options.to.size())
    throw Trouble("give pairs of agents: the same number of --from HOST[:PORT] and --to HOST[:PORT]");
  if (!options.data_addresses.empty() && options.data_addresses.size() != options.to.size())
    throw Trouble("--data-address is needed for each pair or for none");
  ConsoleOptions console;
  console.token = token;
  console.data_port = options.data_port;
  for (std::size_t i = 0; i < options.from.size(); ++i)
    console.agents.push_back({longhaul::measuring::parse_endpoint(options.from[i], kControlPort),
                              longhaul::measuring::parse_endpoint(options.to[i], kControlPort),
                              options.data_addresses.empty() ? "" : options.data_addresses[i]});
  return console;
}

void list_presets() {
  for (const Preset& preset : presets()) {
    std::cout << preset.name << ": " << preset.compares << '\n';
    for (const Row& row : preset.rows)
      std::cout << "  " << short_name(row) << ", file " << row.workload.file_bytes << ", send buffer "
                << row.workload.send_buffer << ", window " << row.workload.window_bytes << ", "
                << name_of(row.workload.calls) << '\n';
  }
}

template <class Print>
void write_to(const std::string& file, Print print) {
  if (file.empty()) return;
  if (file == "-") return print(std::cout);
  std::ofstream out{file};
  print(out);
  out.flush();
  if (!out) throw Trouble("cannot write " + file);
}

// Without a terminal, one line at the start and end of each row.
void say_begin(const Row& row, std::ostream& out) {
  out << "longhaul-txn: " << short_name(row) << ": up to " << row.workload.transactions
      << (row.pairs > 1 ? " transactions of each pair" : " transactions");
  if (row.workload.longest.count() > 0)
    out << ", started within " << static_cast<double>(row.workload.longest.count()) / 1000 << " s";
  out << std::endl;
}

void say_end(const RowResult& result, std::ostream& out) {
  const Figures figures = figures_of(result.pairs, result.row.workload);
  out << "longhaul-txn: " << short_name(result.row) << ": " << figures.transactions << " transactions in "
      << figures.seconds << " s, mean " << figures.response_ms.mean << " ms";
  if (result.interrupted) out << "; interrupted";
  if (!result.trouble.empty()) out << "; failed";
  out << std::endl;
}

int run_console(const RunOptions& options, const CLI::App& run, const std::string& token) {
  const auto rows = rows_of(options, run);
  const auto console = console_of(options, token);
  const bool is_terminal = ::isatty(STDERR_FILENO);
  std::ostream* progress = !options.quiet && is_terminal ? &std::cerr : nullptr;
  std::ostream* log = !options.quiet && !is_terminal ? &std::cerr : nullptr;
  std::vector<RowResult> results;
  for (const Row& row : rows) {
    if (log) say_begin(row, *log);
    results.push_back(run_row(console, row, progress));
    if (log) say_end(results.back(), *log);
    if (results.back().interrupted || !results.back().trouble.empty()) break;
  }
  if (options.json != "-" && options.csv != "-") print_table(results, std::cout);
  write_to(options.json, [&](std::ostream& out) { out << boost::json::serialize(to_json(results)) << '\n'; });
  write_to(options.csv, [&](std::ostream& out) { print_csv(results, out); });
  if (!results.back().trouble.empty()) throw Trouble(results.back().trouble);
  return results.back().interrupted ? kInterrupted : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Transactions between two hosts, timed: EFT-SHORT, EFT-LONG, FILETRANSF-LONG over TCP and UDP."};
  app.require_subcommand(1);
  std::string listen = "127.0.0.1";
  std::string agent_token_file;
  CLI::App* agent = app.add_subcommand("agent", "run an agent that serves consoles until SIGINT or SIGTERM");
  agent->add_option("--listen", listen, "HOST[:PORT]; :: for all IPv4 and IPv6 addresses")
      ->capture_default_str();
  add_token(agent, agent_token_file);
  RunOptions options;
  std::string run_token_file;
  CLI::App* run = add_run(app, options);
  add_token(run, run_token_file);
  longhaul::manuals::add_options(app, "longhaul-txn");
  try {
    app.parse(argc, argv);
    if (*agent) {
      run_agent({longhaul::measuring::parse_endpoint(listen, kControlPort), read_token(agent_token_file)},
                std::cerr);
      return 0;
    }
    if (options.list_presets) {
      list_presets();
      return 0;
    }
    return run_console(options, *run, read_token(run_token_file));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "longhaul-txn: " << error.what() << std::endl;
    return 1;
  }
}
