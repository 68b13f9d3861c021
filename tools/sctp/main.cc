// SPDX-License-Identifier: Apache-2.0
// The command line of longhaul-sctp: how fast SCTP carries a stream between two hosts, and what it costs
// them. The measurement itself is in stream.h.
#include <boost/json.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "cli11.h"
#include "tools/sctp/association.h"
#include "tools/sctp/stream.h"

namespace {

using namespace longhaul::sctp;

double seconds(std::chrono::microseconds time) { return std::chrono::duration<double>(time).count(); }

boost::json::object words(const Received& received) {
  return {{"bytes", received.bytes},
          {"seconds", seconds(received.elapsed)},
          {"cpu_seconds", seconds(received.cpu)}};
}

void serve(const Endpoint& at, const StackSettings& settings, bool once) {
  Stack stack{settings};
  Listener listener{at};
  std::cout << "listening on " << at.address << " port " << at.port << std::endl;
  do {
    Association association = listener.accept();
    try {
      std::cout << boost::json::serialize(words(receive_stream(association))) << std::endl;
    } catch (const std::runtime_error& error) {  // one bad sender is not the end of the server
      std::cerr << "longhaul-sctp: " << error.what() << std::endl;
      association.abort();
    }
  } while (!once);
}

void send(const std::optional<std::string>& from, const Endpoint& to, double length,
          std::size_t message_bytes, const StackSettings& settings) {
  Stack stack{settings};
  Association association = Association::connect(from, to);
  const std::size_t fits = association.largest_unfragmented();
  const Sent sent =
      send_stream(association, std::chrono::milliseconds(static_cast<long>(length * 1000)), message_bytes);
  const Stack::Counters counters = Stack::counters();
  std::cout << boost::json::serialize(boost::json::object{{"implementation", "usrsctp"},
                                                          {"message_bytes", sent.message_bytes},
                                                          {"fits_a_packet", fits},
                                                          {"buffer_bytes", settings.buffer_bytes},
                                                          {"mtu", settings.mtu},
                                                          {"sent",
                                                           {{"bytes", sent.bytes},
                                                            {"seconds", seconds(sent.elapsed)},
                                                            {"cpu_seconds", seconds(sent.cpu)}}},
                                                          {"received", words(sent.received)},
                                                          {"packets", counters.packets_sent},
                                                          {"chunks", counters.data_chunks_sent},
                                                          {"chunks_again", counters.data_chunks_sent_again},
                                                          {"timeouts", counters.timeouts}})
            << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app{
      "Measures the throughput and CPU cost of an SCTP stream. It uses usrsctp, in user space over raw IP, "
      "so it needs root and "
      "no kernel module; the kernel's own SCTP must not be loaded, because it would also answer."};
  app.require_subcommand(1);
  StackSettings settings;
  std::uint16_t port = 5202;

  auto* server = app.add_subcommand("server", "receive streams, one after another");
  Endpoint at;
  bool once = false;
  server->add_option("address", at.address, "address of this host")->required();
  server->add_option("--port", port)->capture_default_str();
  server->add_option("--buffer", settings.buffer_bytes, "bytes of send and receive buffer")
      ->capture_default_str();
  server
      ->add_option("--mtu", settings.mtu,
                   "MTU of the path in bytes of IP; it is not discovered automatically")
      ->capture_default_str()
      ->check(CLI::Range(1280, 65'535));
  server->add_flag("--once", once, "exit after the first stream");

  auto* client = app.add_subcommand("client", "send a stream and print the result as JSON");
  Endpoint to;
  std::optional<std::string> from;
  double length = 10;
  std::size_t message_bytes = 0;
  client->add_option("address", to.address, "address of the server")->required();
  client->add_option("--port", port)->capture_default_str();
  client->add_option("--from", from, "address of this host to use");
  client->add_option("--seconds", length)->capture_default_str()->check(CLI::Range(0.1, 86'400.0));
  client
      ->add_option("--message", message_bytes,
                   "bytes of each message (default: the most that fits into a packet)")
      ->check(CLI::Range(1, 65'536));
  client->add_option("--buffer", settings.buffer_bytes, "bytes of send and receive buffer")
      ->capture_default_str();
  client
      ->add_option("--mtu", settings.mtu,
                   "MTU of the path in bytes of IP; it is not discovered automatically")
      ->capture_default_str()
      ->check(CLI::Range(1280, 65'535));

  CLI11_PARSE(app, count, arguments);
  try {
    at.port = to.port = port;
    if (*server)
      serve(at, settings, once);
    else
      send(from, to, length, message_bytes, settings);
  } catch (const std::exception& error) {
    std::cerr << "longhaul-sctp: " << error.what() << std::endl;
    return 1;
  }
}
