// SPDX-License-Identifier: Apache-2.0
// A flow with a module at both ends of a simulated link, in virtual time: what LinkedFlow does, with strings
// in the place of sockets.
#pragma once
#include <catch2/catch.hpp>
#include <random>

#include "../link/simulated_pair.h"
#include "probe_module.h"
#include "proxy/flows/module_host.h"
#include "tests/proxy/loopback.h"

namespace longhaul::flows::hosted {
using namespace modules;
using link::simulation::Endpoint;
using link::simulation::Pair;
using link::simulation::PairOptions;
using testing::pattern;
using namespace std::chrono_literals;

struct Half {
  Endpoint* side = nullptr;
  link::StreamId id;
  std::unique_ptr<ModuleHost> host;
  Probe* probe = nullptr;

  std::string to_send;  // by the application on this LAN
  bool closes = true;   // after that
  bool resets = false;  // instead
  bool reads = true;
  std::mt19937 random{1};
  std::size_t most_piece = 64 * 1024;

  std::string received;
  bool begun = false;      // nothing is read from the application before
  bool shut = false;       // the application has read the end
  bool was_reset = false;  // its connection was
  bool closed = false, gone = false;
  bool gave_up = false;

  link::Stream* stream() { return side->session.find(id); }
  std::size_t piece() { return 1 + random() % most_piece; }
};

inline config::Features probe_features() { return config::standard_features(probe_table()); }
// Both sides have the module.
inline PairOptions with_probe(PairOptions options) {
  options.allowed = {probe_features(), probe_features()};
  return options;
}

class Flow {
 public:
  explicit Flow(PairOptions options = {}, config::Features features = probe_features(),
                std::shared_ptr<Memory> of_all = std::make_shared<Memory>(1 << 30))
      : memory(std::move(of_all)), pair(with_probe(std::move(options))) {
    pair.connect();
    pair.run_for(200ms);
    link::OpenRequest request;
    request.destination.address = boost::asio::ip::make_address("10.10.2.2");
    request.destination.port = 445;
    request.features = features;
    pair.b.on_event = [this](const link::Event& event) {
      if (event.kind != link::Event::Kind::stream) return;
      if (event.stream_event == link::EventKind::opened) {
        far.side = &pair.b;
        far.id = event.stream;
        far.stream()->give_answer({.module_accepted = true});
        begin(far);
      }
      tell(far, event);
    };
    pair.a.on_event = [this](const link::Event& event) {
      if (event.kind == link::Event::Kind::stream) tell(near, event);
    };
    link::Stream& stream = pair.a.session.open(request, pair.now());
    near.side = &pair.a;
    near.id = stream.id();
    begin(near);
    REQUIRE(run_until([&] { return far.host != nullptr; }));
    near.begun = far.begun = true;
  }

  std::shared_ptr<Memory> memory;
  Pair pair;
  Half near, far;

  void pump(Half& half) {
    if (!half.host || half.gone) return;
    for (bool moved = true; moved;) {
      const link::TimePoint now = pair.now();
      moved = half.host->run(now, {.bytes_per_second = 1'000'000, .round_trip = 40ms});
      moved |= deliver(half);
      moved |= read(half, now);
    }
    if (half.host->gave_up()) half.gave_up = half.was_reset = half.gone = true;
    if (half.host->aborts() && half.host->to_lan().empty()) {
      half.stream()->abort();
      half.was_reset = half.gone = true;
    }
  }
  bool run_until(const std::function<bool()>& done, link::Duration time = 60s) {
    const link::TimePoint end = pair.now() + time;
    while (!done() && pair.now() < end) {
      pair.run_for(3ms);
      pump(near);
      pump(far);
    }
    return done();
  }
  bool complete() const { return near.shut && far.shut; }

 private:
  void begin(Half& half) {
    auto probe = std::make_unique<Probe>();
    half.probe = probe.get();
    half.host = std::make_unique<ModuleHost>(std::move(probe), *half.stream(), memory);
  }
  void tell(Half& half, const link::Event& event) {
    if (event.stream_event == link::EventKind::stopped) half.host->stream_stopped();
    if (event.stream_event == link::EventKind::reset) half.was_reset = half.gone = true;
    if (event.stream_event == link::EventKind::features) half.host->features_changed();
    // As in the daemon, what is told here is looked at once the events are done with.
  }
  bool deliver(Half& half) {
    bool moved = false;
    while (half.reads && !half.host->to_lan().empty()) {
      Slice piece = half.host->to_lan().front();
      piece = piece.sub(0, std::min(piece.size(), half.piece()));
      half.received += Probe::text(piece);
      half.host->lan_took(piece.size());
      moved = true;
    }
    if (half.host->lan_is_over()) half.shut = true;
    // The plain pump.
    if (half.reads && half.host->passes(Way::to_lan) && !half.shut) {
      link::Stream& stream = *half.stream();
      while (!stream.reader().readable().empty()) {
        Slice piece = stream.reader().readable().front();
        half.received += Probe::text(piece);
        stream.reader().consume(piece.size(), pair.now(), 40ms);
        moved = true;
      }
      half.host->take_messages(pair.now(), 40ms);
      if (stream.reader().state() == link::ReadState::ended) half.shut = true;
      if (stream.reader().state() == link::ReadState::aborted) half.was_reset = half.gone = true;
    }
    return moved;
  }
  bool read(Half& half, link::TimePoint now) {
    const bool plain = half.host->passes(Way::to_stream);
    if (!half.begun || half.closed || (!plain && !half.host->takes_lan())) return false;
    if (half.to_send.empty()) {
      if (!half.closes && !half.resets) return false;
      half.closed = true;
      if (plain) {
        half.stream()->writer().end();
      } else {
        half.host->lan_ended(now, half.resets ? Ending::reset : Ending::closed);
      }
      return true;
    }
    std::size_t size = std::min(half.to_send.size(), half.piece());
    if (plain) size = std::min(size, half.stream()->writer().may_write());
    if (size == 0) return false;
    Slice bytes = Probe::slice(half.to_send.substr(0, size));
    plain ? half.stream()->writer().write(std::move(bytes)) : half.host->from_lan(now, std::move(bytes));
    half.to_send.erase(0, size);
    return true;
  }
};

}  // namespace longhaul::flows::hosted
