// SPDX-License-Identifier: Apache-2.0
// A proxy of one machine for tests: takes flows in transparent mode, dials their servers and relays, and says
// so line by line. What is tested are the parts it is made of; it has no link, limits or configuration.
#include <boost/asio.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "cli11.h"
#include "proxy/flows/dialer.h"
#include "proxy/flows/relay.h"
#include "proxy/intercept/host_checks.h"
#include "proxy/intercept/interception.h"
#include "proxy/intercept/watchdog.h"

using namespace longhaul;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

std::string text(const tcp::endpoint& at) {
  return flows::Destination{.host = {}, .address = at.address(), .port = at.port()}.to_text();
}

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

struct Proxy {
  asio::io_context io;
  config::Intercept config{.mode = config::Intercept::Mode::tproxy};
  flows::Dialer dialer{flows::DialerConfig{}};
  flows::Relay relay;
  std::optional<intercept::Interception> interception;

  asio::awaitable<void> carry(flows::Accepted accepted) {
    flows::DialRequest request{.destination = accepted.destination,
                               .client = accepted.client,
                               .source = config.source,
                               .check = flows::DialRequest::Check::client};
    flows::Dialled dialled = co_await dialer.dial(std::move(request));
    const std::string flow = text(accepted.client) + " " + accepted.destination.to_text();
    if (!dialled.connected()) {
      say("failed " + flow + " " + dialled.error.message());
      interception->refuse(dialled.server);
      accepted.socket.set_option(asio::socket_base::linger(true, 0));
      accepted.socket.close();
      co_return;
    }
    say("carried " + flow + " from " + text(dialled.socket.local_endpoint()) +
        (dialled.source_fallback ? " fallback" : ""));
    flows::FlowBytes bytes;
    const flows::RelayEnd end = co_await relay.run(accepted.socket, dialled.socket, bytes);
    say("ended " + flow + " " + std::to_string(static_cast<int>(end)));
  }

  void on_signals(asio::signal_set& signals) {
    signals.async_wait([&](boost::system::error_code error, int number) {
      if (error) return;
      if (number == SIGTERM) {
        interception->close();
        io.stop();
        return;
      }
      if (number == SIGUSR2)
        std::this_thread::sleep_for(std::chrono::seconds(30));  // the watchdog's business
      if (number == SIGUSR1) {
        const auto done = interception->is_up() ? interception->divert() : interception->up();
        say(done ? (interception->is_up() ? "up" : "diverting") : done.error().message);
      }
      on_signals(signals);
    });
  }
};

}  // namespace

int main(int argc, char** argv) {
  Proxy proxy;
  CLI::App app("transparent mode without a link");
  bool divert = false, slow_connect = false, check = false;
  std::string source = "auto";
  app.add_option("--interface", proxy.config.interfaces);
  app.add_option("--port", proxy.config.port);
  app.add_option("--source", source)->check(CLI::IsMember({"auto", "client", "proxy"}));
  app.add_flag("--divert", divert, "take no new flows");
  app.add_flag("--slow-connect", slow_connect, "fast_connect = false");
  app.add_flag("--check", check, "say what this machine lacks, and end");
  CLI11_PARSE(app, argc, argv);
  if (source == "client") proxy.config.source = config::Source::client;
  if (source == "proxy") proxy.config.source = config::Source::proxy;
  if (check) {
    config::Config whole;
    whole.intercept = proxy.config;
    for (const auto& finding : intercept::host_findings(whole))
      say(finding.sentence + " | " + finding.remedy);
    return 0;
  }

  proxy.interception.emplace(proxy.io, proxy.config, !slow_connect, [&](flows::Accepted accepted) {
    asio::co_spawn(proxy.io, proxy.carry(std::move(accepted)), asio::detached);
  });
  const auto done = divert ? proxy.interception->divert() : proxy.interception->up();
  if (!done) {
    say(done.error().message);
    return 1;
  }
  say(divert ? "diverting" : "up");
  asio::signal_set signals(proxy.io, SIGTERM, SIGUSR1, SIGUSR2);
  proxy.on_signals(signals);
  const intercept::Watchdog watchdog(proxy.io);
  proxy.io.run();
}
