// SPDX-License-Identifier: Apache-2.0
// Flows that begin while the memory cap leaves no room.
#include "probe_module.h"
#include "two_sites.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

namespace {

// One exchange through both sites, and why it went which way.
asio::awaitable<Reason> exchange(TwoSites& sites, tcp::acceptor& acceptor) {
  tcp::socket client = co_await sites.connect(acceptor.local_endpoint());
  tcp::socket server = co_await acceptor.async_accept(asio::use_awaitable);
  co_await write(client, "question");
  const std::string question = co_await read_exactly(server, 8);
  CHECK(question == "question");
  co_await write(server, "answer");
  const std::string answer = co_await read_exactly(client, 6);
  CHECK(answer == "answer");
  const FlowTable& table = sites.near->table;
  const FlowRecord& flow = table.live().rbegin()->second;
  const Reason reason = flow.reason;
  client.close();
  server.close();
  asio::steady_timer soon(co_await asio::this_coro::executor);
  while (!table.live().empty()) {
    soon.expires_after(1ms);
    co_await soon.async_wait(asio::use_awaitable);
  }
  co_return reason;
}

}  // namespace

TEST_CASE("a flow bypasses the link while unread bytes of other flows use up the memory") {
  asio::io_context io;
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
  TwoSites sites(io);
  run(io, [](TwoSites& s, tcp::acceptor& a) -> asio::awaitable<void> {
    co_await s.link_up();
    Reason reason = co_await exchange(s, a);
    CHECK(reason == reasons::optimised);
    link::CreditPool& pool = s.near->pool;
    const std::uint64_t held = pool.free_bytes();
    pool.take(held);
    reason = co_await exchange(s, a);
    CHECK(reason == reasons::optimised);  // granted, but not used
    const std::uint64_t unread = pool.granted_bytes();
    pool.arrived(unread);
    CHECK(s.near->links[0]->memory_used_up());
    reason = co_await exchange(s, a);
    CHECK(reason == reasons::memory_limit);
    CHECK(count(s.near->table.totals().by_reason, reasons::memory_limit) == 1);
    pool.taken(unread);
    pool.give(held);
    reason = co_await exchange(s, a);
    CHECK(reason == reasons::optimised);
    s.near->retained.add(64 << 20);
    reason = co_await exchange(s, a);
    CHECK(reason == reasons::memory_limit);
    s.near->retained.remove(64 << 20);
    reason = co_await exchange(s, a);
    CHECK(reason == reasons::optimised);
  }(sites, acceptor));
}

TEST_CASE("a flow crosses the link without its module while modules hold their maximum") {
  asio::io_context io;
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
  const auto make = [](const modules::Ends&) { return std::make_unique<modules::Probe>(); };
  const auto memory = std::make_shared<modules::Memory>(1000);
  const std::array ports{acceptor.local_endpoint().port()};
  const std::vector<modules::Listed> list{
      {.descriptor = {.name = "probe", .ports = ports, .features = modules::kProbeFeatures},
       .instance = std::make_shared<modules::ProbeInstance>(make, make),
       .memory = memory}};
  TwoSites sites(io, list, list);
  run(io, [](TwoSites& s, tcp::acceptor& a, modules::Memory& of_modules) -> asio::awaitable<void> {
    co_await s.link_up();
    Reason reason = co_await exchange(s, a);
    CHECK(reason == reasons::optimised);
    of_modules.add(1000);
    const auto flows_with = [&s] { return s.far->table.by_module_so_far().begin()->second.flows; };
    CHECK(flows_with() == 1);
    reason = co_await exchange(s, a);
    CHECK(reason == reasons::memory_limit);
    CHECK(flows_with() == 1);
    of_modules.remove(1000);
    reason = co_await exchange(s, a);
    CHECK(reason == reasons::optimised);
    CHECK(flows_with() == 2);
  }(sites, acceptor, *memory));
}
