// SPDX-License-Identifier: Apache-2.0
// Which flows are offered to a module: by the ports of the configuration, and by a client's first bytes.
#include "proxy/flows/recognition.h"

#include "probe_module.h"
#include "two_sites.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using modules::Recognised;

namespace {

constexpr std::string_view kGreeting = "HELLO";

Recognised greets(Bytes first) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (text.substr(0, kGreeting.size()) != kGreeting.substr(0, text.size())) return Recognised::no;
  return text.size() < kGreeting.size() ? Recognised::too_few : Recognised::yes;
}

// A server whose port no module has by default, behind two sites that both have the module.
struct RecognitionBench {
  explicit RecognitionBench(config::ModuleSettings settings) : sites(io, list, list) {
    sites.near->config.modules = {std::move(settings)};
  }
  std::uint16_t port() const { return acceptor.local_endpoint().port(); }
  // Sends `first` through both sites; what arrives is compared. Whether the module ran.
  asio::awaitable<bool> runs_for(std::string first, std::string rest = {}) {
    tcp::socket client = co_await sites.connect(acceptor.local_endpoint());
    co_await write(client, first);
    if (!rest.empty()) {
      asio::steady_timer later(io, 3ms);
      co_await later.async_wait(asio::use_awaitable);
      co_await write(client, rest);
    }
    tcp::socket server = co_await acceptor.async_accept(asio::use_awaitable);
    const std::string got = co_await read_exactly(server, first.size() + rest.size());
    CHECK(got == first + rest);
    co_await write(server, "answer");
    const std::string answer = co_await read_exactly(client, 6);
    CHECK(answer == "answer");
    const auto& live = sites.near->table.live();
    const bool ran = std::ranges::any_of(live, [](const auto& flow) { return flow.second.module != nullptr; });
    client.close();
    server.close();
    asio::steady_timer soon(io);
    while (!live.empty()) {
      soon.expires_after(1ms);
      co_await soon.async_wait(asio::use_awaitable);
    }
    co_return ran;
  }

  asio::io_context io;
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
  std::vector<modules::Listed> list{
      {.descriptor = {.name = "probe", .recognise = greets, .features = modules::kProbeFeatures},
       .instance = std::make_shared<modules::ProbeInstance>(
           [](const modules::Ends&) { return std::make_unique<modules::Probe>(); },
           [](const modules::Ends&) { return std::make_unique<modules::Probe>(); })}};
  TwoSites sites;
};

}  // namespace

TEST_CASE("a module has the ports that the configuration gives it, else its own") {
  constexpr std::array<std::uint16_t, 2> kPorts{445, 139};
  const std::vector<modules::Listed> list{{.descriptor = {.name = "alpha", .ports = kPorts}},
                                          {.descriptor = {.name = "beta"}}};
  CHECK(module_at(list, {}, 139) == &list[0]);
  CHECK(module_at(list, {}, 1445) == nullptr);
  const ModuleSettings other{{.name = "alpha", .ports = {1445}}, {.name = "beta", .ports = {445}}};
  CHECK(module_at(list, other, 1445) == &list[0]);
  CHECK(module_at(list, other, 445) == &list[1]);
  CHECK(module_at(list, other, 139) == nullptr);
}

TEST_CASE("with any_port, a flow whose first bytes are the module's is offered to it") {
  RecognitionBench bench({.name = "probe", .any_port = true});
  run(bench.io, [](RecognitionBench& b) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    const bool whole = co_await b.runs_for("HELLO world");
    CHECK(whole);
    const bool cut = co_await b.runs_for("HEL", "LO world");
    CHECK(cut);
    const bool other = co_await b.runs_for("GOODBYE");
    CHECK_FALSE(other);
  }(bench));
}

TEST_CASE("without any_port only the port counts") {
  RecognitionBench bench({.name = "probe"});
  run(bench.io, [](RecognitionBench& b) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    const bool elsewhere = co_await b.runs_for("HELLO world");
    CHECK_FALSE(elsewhere);
    b.sites.near->config.modules[0].ports = {b.port()};
    const bool here = co_await b.runs_for("HELLO world");
    CHECK(here);
  }(bench));
}

TEST_CASE("a server that speaks first is not waited for, and a module that is switched off not asked") {
  RecognitionBench bench({.name = "probe", .any_port = true});
  run(bench.io, [](RecognitionBench& b) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    tcp::socket client = co_await b.sites.connect(b.acceptor.local_endpoint());
    tcp::socket server = co_await b.acceptor.async_accept(asio::use_awaitable);
    co_await write(server, "220 ready");
    const std::string banner = co_await read_exactly(client, 9);
    CHECK(banner == "220 ready");
    client.close();
    server.close();
    b.sites.near->features.modules.set("probe", 0);
    const bool ran = co_await b.runs_for("HELLO world");
    CHECK_FALSE(ran);
  }(bench));
}
