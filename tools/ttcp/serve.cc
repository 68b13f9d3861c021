// SPDX-License-Identifier: Apache-2.0
// See serve.h. A controller is served by a thread of its own, so that others hear that they have to wait.
#include "tools/ttcp/serve.h"

#include <iostream>
#include <thread>

#include "tools/ttcp/receive.h"

namespace longhaul::ttcp {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kIdle = 10min;  // between two tests; the controller's host may be asleep

void say(const std::string& sentence) { std::cerr << "longhaul-ttcp: " + sentence + "\n" << std::flush; }

Receipt receive_one(const Announcement& announcement, Channel& control, const ServeOptions& options,
                    const Stop& stop) {
  const Address here = control.local().with_port(options.data_port);
  const SocketOptions of_socket{.buffer_bytes = announcement.socket_buffer};
  const wan::Descriptor socket =
      announcement.is_udp ? bind_udp(here, of_socket) : listen_tcp(here, of_socket);
  control.send({{"say", "ready"}, {"port", Address::local_of(socket.get()).port()}}, stop);
  return announcement.is_udp ? receive_udp(socket.get(), announcement, control, stop)
                             : receive_tcp(socket.get(), announcement, control, stop);
}

// False: no sweep was requested, for example a connection that only measures the set-up time.
bool serve_and_say(Channel& control, const ServeOptions& options, const Stop& stop) {
  std::string who;
  try {
    who = control.peer().host();
    control.greet(measuring::Side::listens, options.token, Clock::now() + 10s, stop);
  } catch (const PeerGone&) {
    return false;
  } catch (const Trouble& trouble) {
    say("rejected " + who + ": " + trouble.what());
    return false;
  }
  say("sweep from " + who + " begins");
  try {
    serve_controller(control, options, stop);
    say("sweep from " + who + " is done");
  } catch (const PeerGone& error) {
    say("sweep from " + who + " ended early: " + error.what());
  } catch (const std::runtime_error& error) {
    say("sweep from " + who + " ended early: " + fit_to_print(error.what()));
    control.tell_trouble(error.what(), stop);
  }
  return true;
}

}  // namespace

void serve_controller(Channel& control, const ServeOptions& options, const Stop& stop) {
  for (;;) {
    const auto message = control.receive(Clock::now() + kIdle, stop);
    if (!message) throw PeerGone("nothing received from the controller for ten minutes");
    const std::string what = say_of(*message);
    if (what == "bye") return;
    if (what == "sent") continue;  // of a test that ended early
    if (what != "test") throw PeerGone("unexpected message from the controller");
    control.send(to_message(receive_one(to_announcement(*message), control, options, stop)), stop);
  }
}

void serve(const ServeOptions& options, const Stop& stop) {
  const wan::Descriptor listener =
      listen_tcp(listening_address(options.listen, options.control_port, Protocol::tcp, options.family), {});
  say("ready for sweeps on port " + std::to_string(Address::local_of(listener.get()).port()));
  Stop served;  // from the worker: one sweep is done, and `once` was asked for
  std::atomic<bool> busy = false;
  std::jthread worker;
  for (;;) {
    pollfd sources[] = {{listener.get(), POLLIN, 0}, {served.descriptor(), POLLIN, 0}};
    wait(sources, std::nullopt, stop);
    if (served.is_requested()) return;
    wan::Descriptor socket = accept_one(listener.get(), Clock::now(), stop);
    if (!socket) continue;
    auto control = std::make_unique<Channel>(std::move(socket));
    if (busy.exchange(true)) {
      control->tell_trouble("it is busy with another sweep; two at the same time would disturb each other",
                            stop);
      continue;
    }
    worker = std::jthread([&, control = std::move(control)] {
      bool was_sweep = false;
      try {
        was_sweep = serve_and_say(*control, options, stop);
      } catch (const Interrupted&) {  // the other thread says so
      } catch (const std::exception& error) {
        say(error.what());
      }
      busy = false;
      if (was_sweep && options.once) served.request();
    });
  }
}

}  // namespace longhaul::ttcp
