// SPDX-License-Identifier: Apache-2.0
// See options.h. Short letters are ttcp's and those of source 5's controller.
#include "tools/ttcp/options.h"

#include <fstream>

#include "tools/wan/units.h"

namespace longhaul::ttcp {
namespace {

// An option whose text is read by one of the tools' parsers, which say what is wrong with it.
template <class Parse, class Store>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, const std::string& help, Parse parse,
                        Store store) {
  return app
      .add_option_function<std::string>(
          name,
          [name, parse, store](const std::string& text) {
            const auto parsed = parse(text);
            if (!parsed) throw CLI::ValidationError(name.substr(name.rfind(',') + 1), parsed.error());
            store(*parsed);
          },
          help)
      ->type_name("TEXT");
}

void add_family(CLI::App& app, Family& family) {
  app.add_flag_callback(
      "-4", [&family] { family = Family::ipv4; }, "IPv4 only");
  app.add_flag_callback(
      "-6", [&family] { family = Family::ipv6; }, "IPv6 only");
}

// A file, since what stands on a command line can be read by every user of the host.
void add_token(CLI::App& app, std::string& token) {
  app.add_option_function<std::string>(
         "--token-file",
         [&token](const std::string& name) {
           std::ifstream file(name);
           if (!std::getline(file, token) || token.empty())
             throw CLI::ValidationError("--token-file",
                                        "\"" + name + "\" contains no token in its first line");
         },
         "file whose first line is a secret that both ends must have")
      ->type_name("FILE");
}

void add_duration(CLI::App& app, const std::string& name, Duration& to, Duration most,
                  const std::string& help) {
  add_parsed(app, name, help, &wan::parse_duration, [name, most, &to](std::chrono::nanoseconds value) {
    if (value > most) throw CLI::ValidationError(name, "is too long");
    to = std::chrono::duration_cast<Duration>(value);
  });
}

using namespace std::chrono_literals;

}  // namespace

Finish add_plain(CLI::App& app, PlainOptions& options) {
  struct Flags {
    bool transmit = false;
    bool receive = false;
    bool udp = false;
  };
  auto flags = std::make_shared<Flags>();
  const std::string group = "Plain ttcp";
  app.option_defaults()->group(group);
  app.add_flag("-t", flags->transmit, "transmit to HOST");
  app.add_flag("-r", flags->receive, "receive");
  app.add_option("host", options.host, "-t: destination; -r: address to listen on (default: all)");
  app.add_option("-l", options.buffer_bytes, "bytes of each buffer read from or written to the network")
      ->check(CLI::Range(1u, 64u * 1024 * 1024))
      ->capture_default_str();
  app.add_flag("-u", flags->udp, "UDP instead of TCP");
  app.add_option("-p", options.port, "port to send to or listen at")->capture_default_str();
  app.add_flag("-s", options.pattern, "-t: send a pattern; -r: discard; otherwise standard input and output");
  app.add_option("-A", options.alignment, "align buffers to this, a power of 2")
      ->check([](const std::string& text) {
        const auto value = std::strtoul(text.c_str(), nullptr, 10);
        return value > 0 && value <= 1 << 24 && (value & (value - 1)) == 0
                   ? std::string()
                   : "\"" + text + "\" is not a power of 2 up to 16777216";
      })
      ->capture_default_str();
  app.add_option("-O", options.offset, "start buffers at this offset from the alignment")
      ->check(CLI::Range(0u, 1u << 24))
      ->capture_default_str();
  app.add_flag("-v", options.verbose, "more statistics");
  app.add_flag("-d", options.socket.debug, "set SO_DEBUG on the socket");
  app.add_option("-b", options.socket.buffer_bytes, "socket buffer in bytes")
      ->check(CLI::Range(1u, kMostSocketBuffer));
  app.add_option("-f", options.format,
                 "unit of rates: k, m, g (bits) or K, M, G (bytes); powers of 1024, as in ttcp")
      ->check(CLI::IsMember({"k", "K", "m", "M", "g", "G"}))
      ->capture_default_str();
  app.add_option("-n", options.buffers, "-t -s: number of buffers")->capture_default_str();
  app.add_flag("-D", options.socket.no_delay, "-t: disable the Nagle algorithm (TCP_NODELAY)");
  app.add_option("-w", options.write_delay_ms, "-t: milliseconds before each write")
      ->check(CLI::Range(0u, 60'000u));
  app.add_flag("-B", options.full_blocks, "-r: write only full blocks of -l bytes");
  app.add_flag("-T", options.touch, "-r: read each byte in memory");
  app.add_flag("-c", options.continuous,
               "-t: send until interrupted; -r: receive one transfer after another");
  app.add_flag("-R", options.concurrent, "-r: receive several transfers at once, each counted separately");
  app.option_defaults()->group("Plain ttcp, additions");
  add_family(app, options.family);
  add_duration(app, "--pause", options.pause, 60s,
               "-t -u: pause before the end marks, so that queues can drain; default 200ms");
  add_duration(app, "--silence", options.silence, 1h,
               "-r -u: time without packets after which the end marks are considered lost; default 5s");
  app.option_defaults()->group("Options");
  return [flags, &options] {
    if (flags->transmit == flags->receive)
      throw CLI::ValidationError("-t, -r",
                                 "give one of them, or the command `sweep`, `serve` or `plot`; see --help");
    options.transmit = flags->transmit;
    options.protocol = flags->udp ? Protocol::udp : Protocol::tcp;
    options.continuous |= options.concurrent;
    if (options.transmit && options.host.empty()) throw CLI::ValidationError("-t", "HOST is missing");
    if (options.transmit && options.port == 0)
      throw CLI::ValidationError("-p", "port 0 is not valid with -t");
    if (flags->udp && options.transmit && options.buffer_bytes > kMostDatagramBytes)
      throw CLI::ValidationError(
          "-l", "a datagram can have at most " + std::to_string(kMostDatagramBytes) + " bytes");
    if (flags->udp && options.transmit && options.buffer_bytes <= 4)
      throw CLI::ValidationError("-l", "ttcp uses datagrams of up to 4 bytes as end marks");
  };
}

Finish add_serve(CLI::App& serve, ServeOptions& options) {
  serve.add_option("--listen", options.listen, "address of this host (default: all)");
  serve.add_option("-P,--port", options.control_port, "control port")->capture_default_str();
  serve.add_option("-p,--data-port", options.data_port, "port of the tests; 0: dynamic")
      ->capture_default_str();
  serve.add_flag("--once", options.once, "exit after one sweep");
  add_token(serve, options.token);
  add_family(serve, options.family);
  return [] {};
}

Finish add_sweep(CLI::App& sweep, SweepWords& words) {
  words.sweep.control_port = kControlPort;
  sweep.add_option("host", words.sweep.host, "host on which `longhaul-ttcp serve` runs")->required();
  sweep.option_defaults()->group("Tests");
  sweep.add_option("-S,--sizes", words.plan.sizes, "bytes of data in each packet")
      ->delimiter(',')
      ->capture_default_str();
  auto kinds = std::make_shared<std::vector<std::string>>();
  sweep
      .add_option("--kinds", *kinds,
                  "tcp, udp, udp+12, udp+12+rtt (includes a TCP set-up); default: the first three")
      ->delimiter(',');
  sweep.add_option("-N,--trials", words.plan.trials, "number of tests of each kind and size")
      ->check(CLI::Range(1u, 10'000u))
      ->capture_default_str();
  add_parsed(sweep, "-L,--bytes", "amount of data in each test; default 8MiB", &wan::parse_bytes,
             [&words](std::uint64_t bytes) { words.plan.bytes = bytes; });
  sweep.add_option("--packets", words.plan.packets,
                   "number of packets in each test, for all sizes, instead of --bytes");
  sweep.add_option("-x,--padding", words.plan.padding_bytes, "bytes that UDP+12 adds to each packet")
      ->capture_default_str();
  sweep
      .add_option("--min-time", words.sweep.least_seconds,
                  "minimum seconds of each test: sends more packets if needed")
      ->check(CLI::Range(0., 86'400.));
  sweep
      .add_option("--max-time", words.sweep.most_seconds,
                  "maximum seconds of each test: sends fewer packets if needed")
      ->check(CLI::Range(0., 86'400.));
  add_parsed(sweep, "--rate", "limit of UDP in payload bits per second, e.g. 5mbit; default: none",
             &wan::parse_rate,
             [&words](std::uint64_t rate) { words.sweep.udp_rate = static_cast<double>(rate); });
  sweep.add_flag("-D,--no-delay", words.sweep.socket.no_delay,
                 "send each TCP write as a packet (TCP_NODELAY)");
  sweep
      .add_option("-b,--socket-buffer", words.sweep.socket.buffer_bytes,
                  "socket buffers in bytes, at both ends; default: the systems' defaults")
      ->check(CLI::Range(1u, kMostSocketBuffer));
  sweep.option_defaults()->group("Connection and times");
  sweep.add_option("-P,--port", words.sweep.control_port, "control port of HOST")->capture_default_str();
  add_token(sweep, words.sweep.token);
  add_family(sweep, words.sweep.family);
  add_duration(sweep, "--pause", words.sweep.pause, 60s, "pause before UDP's end marks; default 500ms");
  add_duration(sweep, "--silence", words.sweep.silence, 60s,
               "time without packets after which end marks are considered lost; default 2s");
  add_duration(sweep, "--gap", words.sweep.gap, 10min, "pause between two tests; default 100ms");
  add_duration(sweep, "--patience", words.sweep.patience, 10min,
               "time to wait for a connection; default 10s");
  sweep.option_defaults()->group("Results");
  sweep
      .add_option("-F,--file", words.text_file,
                  "write a tab-separated table for a spreadsheet: trials, then means")
      ->type_name("FILE");
  sweep.add_option("--csv", words.csv_file, "write every column as CSV")->type_name("FILE");
  sweep
      .add_option("--json", words.json_file,
                  "write every column, and the conditions of the measurement, as JSON")
      ->type_name("FILE");
  sweep.add_flag("--force", words.force, "overwrite existing files");
  sweep.add_flag_callback(
      "--sending", [&words] { words.groups.insert(Column::Group::sending); },
      "also show the sending rate in tables");
  sweep.add_flag_callback(
      "--fragments", [&words] { words.groups.insert(Column::Group::fragments); },
      "also show fragments in tables, as computed from the path MTU and as counted by the kernels");
  sweep.add_flag_callback(
      "--more", [&words] { words.groups.insert(Column::Group::more); },
      "also show set-up time, duplicates, reordering and the receiver's own drops in tables");
  sweep.add_flag("-q,--quiet", words.quiet, "do not print a line for each test");
  return [kinds, &words] {
    if (!kinds->empty()) words.plan.kinds.clear();
    for (const std::string& text : *kinds) {
      const auto kind = parse_kind(text);
      if (!kind)
        throw CLI::ValidationError("--kinds", "\"" + text + "\" is not one of tcp, udp, udp+12, udp+12+rtt");
      words.plan.kinds.push_back(*kind);
    }
    if (words.sweep.most_seconds > 0 && words.sweep.most_seconds < words.sweep.least_seconds)
      throw CLI::ValidationError("--max-time", "is less than --min-time");
    try {
      make_plan(words.plan);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError("sweep", error.what());
    }
  };
}

void add_plot(CLI::App& plot, PlotWords& words) {
  plot.add_option("file", words.file, "a result file of `sweep --csv` or `--json`")->required();
  plot.add_option("--out", words.folder,
                  "directory for the plots and index.html; default: FILE without its extension, and -plots")
      ->type_name("DIR");
}

boost::json::object to_json(const SweepWords& words) {
  boost::json::array sizes(words.plan.sizes.begin(), words.plan.sizes.end());
  boost::json::array kinds;
  for (const Kind kind : words.plan.kinds) kinds.emplace_back(name_of(kind, words.plan.padding_bytes));
  boost::json::object json{{"sizes", std::move(sizes)},
                           {"kinds", std::move(kinds)},
                           {"trials", words.plan.trials},
                           {"padding_bytes", words.plan.padding_bytes},
                           {"min_time", words.sweep.least_seconds},
                           {"max_time", words.sweep.most_seconds},
                           {"udp_rate", words.sweep.udp_rate},
                           {"no_delay", words.sweep.socket.no_delay},
                           {"socket_buffer", words.sweep.socket.buffer_bytes}};
  if (words.plan.packets)
    json["packets"] = *words.plan.packets;
  else
    json["bytes"] = words.plan.bytes;
  return json;
}

}  // namespace longhaul::ttcp
