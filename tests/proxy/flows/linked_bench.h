// SPDX-License-Identifier: Apache-2.0
// Two sites whose flows to one server have a probe for a module, and what the probes are told to do.
#pragma once
#include "probe_module.h"
#include "proxy/modules/connect_ahead.h"
#include "two_sites.h"

namespace longhaul::flows {

using namespace longhaul::testing;
using modules::Probe;

// Of clients that say GET or POST.
inline constexpr modules::ConnectAhead kProbeConnectAhead{
    .feature = "probe.ahead",
    .may_repeat =
        [](Bytes said) {
          const std::string_view text(reinterpret_cast<const char*>(said.data()), said.size());
          return text.starts_with("GET") && text.find("POST") == text.npos;
        },
    .is_answer = [](Bytes first) { return first[0] != std::byte('4'); }};

// What the halves are told to do when they are made, and where they are.
struct LinkedHalves {
  std::function<void(Probe&)> dress_near, dress_far;
  Probe *near = nullptr, *far = nullptr;
};

// Nothing is awaited inside CHECK: g++ 12 would await it twice.
struct LinkedBench {
  explicit LinkedBench(Reduces reduces = Reduces::no, std::uint64_t far_version = 1,
                       modules::Losses* of_near = nullptr)
      : losses(of_near),
        acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
        list{entry(1)},
        far_list{entry(far_version)},
        sites(io, list, far_list, reduces) {}
  modules::Listed entry(std::uint64_t version) {
    return {.descriptor = {.name = "probe",
                           .version = version,
                           .ports = ports,
                           .connect_ahead = &kProbeConnectAhead,
                           .features = modules::kProbeFeatures},
            .instance = std::make_shared<modules::ProbeInstance>(
                [this](const modules::Ends&) { return make(halves.near, halves.dress_near); },
                [this](const modules::Ends&) { return make(halves.far, halves.dress_far); }, losses)};
  }
  static std::unique_ptr<modules::Module> make(Probe*& at, const std::function<void(Probe&)>& dress) {
    auto probe = std::make_unique<Probe>();
    at = probe.get();
    if (dress) dress(*probe);
    return probe;
  }
  // Client and server, connected through both sites.
  asio::awaitable<SocketPair> connected() {
    co_await sites.link_up();
    tcp::socket client = co_await sites.connect(acceptor.local_endpoint());
    tcp::socket server = co_await acceptor.async_accept(asio::use_awaitable);
    // A server hears of a client before the far side's flow has begun.
    co_await write(server, "!");
    co_await read_exactly(client, 1);
    co_return SocketPair{std::move(client), std::move(server)};
  }
  const FlowRecord& near_flow() { return sites.near->table.live().begin()->second; }
  const FlowRecord& far_flow() { return sites.far->table.live().begin()->second; }
  asio::awaitable<void> until(std::function<bool()> done) {
    asio::steady_timer soon(io);
    while (!done()) {
      soon.expires_after(1ms);
      co_await soon.async_wait(asio::use_awaitable);
    }
  }

  modules::Losses* losses;
  asio::io_context io;
  tcp::acceptor acceptor;
  LinkedHalves halves;
  std::array<std::uint16_t, 1> ports{acceptor.local_endpoint().port()};
  std::vector<modules::Listed> list, far_list;
  TwoSites sites;
};

}  // namespace longhaul::flows
