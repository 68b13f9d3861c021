// SPDX-License-Identifier: Apache-2.0
// Tests which modules' lost writes concern a flow, and how their clients are told.
#include "proxy/flows/client_losses.h"

#include <catch2/catch.hpp>

#include "probe_module.h"
#include "proxy/flows/ends.h"

using namespace longhaul;
using namespace longhaul::flows;
using modules::reasons::memory_limit;

namespace {

class SilentGuard final : public modules::Guard {
 public:
  explicit SilentGuard(std::optional<Reason> why) : why_(why) {}
  void from_client(Slice, Out&) override {}
  void from_server(Slice, Out&) override {}
  void client_ended(Out&) override {}
  void server_ended(Out&) override {}
  bool give_up(Out&) override { return false; }
  bool is_done() const override { return false; }
  std::size_t held_bytes() const override { return 0; }
  std::optional<Reason> reason() const override { return why_; }

 private:
  std::optional<Reason> why_;
};

// What a module would know of one client and server.
struct KnownLosses final : modules::Losses {
  bool needs_guard = false, needs_reset = false;
  std::optional<Reason> why;
  std::vector<modules::Ends> asked, reset;
  std::shared_ptr<void> held = std::make_shared<int>();

  Counts counts() const override { return {}; }
  std::vector<modules::LostFile> files(const modules::Ends&, std::size_t) const override { return {}; }
  std::vector<modules::ToldFile> told(const modules::Ends&, std::size_t) const override { return {}; }
  void set_log(modules::LossLog*) override {}
  std::unique_ptr<modules::Guard> make_guard(const modules::Ends& ends) override {
    asked.push_back(ends);
    return needs_guard ? std::make_unique<SilentGuard>(why) : nullptr;
  }
  bool told_by_reset(const modules::Ends& ends) override {
    reset.push_back(ends);
    return needs_reset;
  }
  std::shared_ptr<void> unguarded(const modules::Ends&) override { return held; }
  std::vector<modules::Ends> guarded() const override { return {}; }
  void on_guarded(std::function<void()>) override {}
  void on_given_up(std::function<void()>) override {}
};

// Two modules with promises at the same port, and one without.
struct ClientLossesBench {
  static constexpr std::array<std::uint16_t, 1> kPorts{445};
  modules::Listed listed(std::string_view name, modules::Losses* known) {
    return {.descriptor = {.name = name, .ports = kPorts},
            .instance = std::make_shared<modules::ProbeInstance>(nullptr, nullptr, known)};
  }
  KnownLosses first, second;
  std::vector<modules::Listed> list{listed("none", nullptr), listed("first", &first),
                                    listed("second", &second)};
  ModuleSettings settings;
  ClientLosses losses{list, settings};
  const boost::asio::ip::address client = boost::asio::ip::make_address("10.1.0.1");
  const Destination server{.address = boost::asio::ip::make_address("10.2.0.1"), .port = 445};
  const modules::Ends ends = ends_of(client, server);
};

}  // namespace

TEST_CASE("modules are not asked about losses at ports that are not theirs") {
  ClientLossesBench bench;
  bench.first.needs_guard = bench.first.needs_reset = true;
  bench.first.why = memory_limit;
  Destination other = bench.server;
  other.port = 80;
  CHECK(bench.losses.any_module_at(445));
  CHECK_FALSE(bench.losses.any_module_at(80));
  CHECK_FALSE(bench.losses.why_guarded(bench.client, other));
  CHECK_FALSE(bench.losses.make_guard(ends_of(bench.client, other)).guard);
  CHECK_FALSE(bench.losses.told_by_reset(ends_of(bench.client, other)));
  CHECK(bench.losses.unguarded(bench.client, other).empty());
  CHECK(bench.first.asked.empty());
  CHECK(bench.first.reset.empty());
}

TEST_CASE("the settings may give a module with losses other ports") {
  ClientLossesBench bench;
  bench.settings.push_back({.name = "first", .ports = {8445}});
  CHECK(bench.losses.unguarded(bench.client, bench.server).size() == 1);
  CHECK(bench.losses.any_module_at(8445));
}

TEST_CASE("a flow is guarded for the first module that has something to report") {
  ClientLossesBench bench;
  bench.first.needs_guard = bench.second.needs_guard = true;
  CHECK_FALSE(bench.losses.why_guarded(bench.client, bench.server));
  bench.second.why = memory_limit;
  CHECK(bench.losses.why_guarded(bench.client, bench.server) == memory_limit);
  CHECK(bench.second.asked.back() == bench.ends);
}

TEST_CASE("a guard counts as memory of its own module") {
  ClientLossesBench bench;
  CHECK_FALSE(bench.losses.make_guard(bench.ends).guard);
  bench.second.needs_guard = true;
  const auto second = bench.losses.make_guard(bench.ends);
  CHECK(second.guard);
  CHECK(second.memory == bench.list[2].memory.get());
  bench.first.needs_guard = true;
  CHECK(bench.losses.make_guard(bench.ends).memory == bench.list[1].memory.get());
}

TEST_CASE("a reset tells a client about the losses of all modules") {
  ClientLossesBench bench;
  CHECK_FALSE(bench.losses.told_by_reset(bench.ends));
  bench.first.needs_reset = true;
  CHECK(bench.losses.told_by_reset(bench.ends));
  CHECK(bench.first.reset.size() == 2);
  CHECK(bench.second.reset.size() == 2);
}

TEST_CASE("a flow without a guard holds back the promises of every module at its port") {
  ClientLossesBench bench;
  const auto held = bench.losses.unguarded(bench.client, bench.server);
  CHECK(held == std::vector<std::shared_ptr<void>>{bench.first.held, bench.second.held});
}
