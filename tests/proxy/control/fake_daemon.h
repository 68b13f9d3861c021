// SPDX-License-Identifier: Apache-2.0
// A daemon without a data path, and the control API running before it on a port of its own. Flows and links
// are whatever a test puts in; features, interception and the cache really change.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "proxy/config/network.h"
#include "proxy/control/controlled.h"
#include "proxy/control/server.h"

namespace longhaul::control {

// Destinations in 10.0.2.0/24 lie behind "datacenter", everything else behind no peer. Port 445 meets rule 1.
class FakeDaemon final : public Controlled {
 public:
  Status status() const override { return now; }
  const flows::FlowTable& flows() const override { return table; }
  const config::Features& features() const override { return in_force; }
  const config::Features& configured_features() const override { return in_file; }
  const History& history() const override { return past; }
  Forecast forecast(const flows::Tuple& tuple) override {
    Forecast forecast{.path = Path::over_link, .peer = "datacenter", .features = in_force, .rule = {}};
    const auto network = *config::parse_network("10.0.2.0/24");
    if (!tuple.destination.host.empty() || !config::contains(network, tuple.destination.address)) {
      forecast = {
          .reason = flows::reasons::no_peer_for_network, .peer = {}, .features = in_force, .rule = {}};
      forecast.path = fail_closed ? Path::refused : Path::bypasses_link;
      if (fail_closed) forecast.sentence = "The flow would be refused, because fail = closed applies to it.";
    }
    if (tuple.destination.port == 445) forecast.rule = 1;
    return forecast;
  }
  std::optional<boost::asio::ip::address> likely_client(const flows::Destination& server) const override {
    if (!server.host.empty()) return std::nullopt;
    return boost::asio::ip::make_address(server.address.is_v6() ? "fd00::7" : "10.0.0.7");
  }
  std::string intercept_rules() const override { return "table inet longhaul {\n}\n"; }
  std::string fail_closed_rules() override {
    return now.fail_closed == FailClosed::enforced ? "table inet longhaul_closed {\n}\n" : "";
  }
  void change_features(const config::Features& features) override { in_force = features; }
  boost::asio::awaitable<Cleared> clear_cache(ClearWhat what) override {
    if (what == ClearWhat::objects) co_return Cleared{.object_bytes = std::exchange(cache.object_bytes, 0)};
    co_return std::exchange(cache, Cleared{});
  }
  boost::system::result<void, Refusal> intercept(InterceptAction action) override {
    if (now.intercept == InterceptState::not_configured) return Refusal{"[intercept] names no interfaces."};
    if (action == InterceptAction::up) now.intercept = InterceptState::up;
    if (action == InterceptAction::down) now.intercept = InterceptState::down;
    if (action == InterceptAction::fail_closed_install) now.fail_closed = FailClosed::enforced;
    if (action == InterceptAction::fail_closed_remove) now.fail_closed = FailClosed::lifted;
    return {};
  }

  boost::system::result<std::vector<std::string>, Refusal> reload() override {
    if (!mistake.empty()) return Refusal{mistake};
    return std::vector<std::string>{"[[peer]] datacenter: fingerprint"};
  }

  const flows::RecentTalkers& recent_talkers() const override { return talkers; }
  flows::FlowRecord& add_flow(const std::string& ends, flows::Reason reason = flows::reasons::optimised) {
    const auto tuple = flows::parse_tuple(ends).value();
    flows::FlowRecord record;
    record.client = tuple.client;
    record.destination = tuple.destination;
    record.reason = reason;
    record.features = in_force;
    record.started = std::chrono::steady_clock::now();
    if (reason == flows::reasons::optimised) record.peer = "datacenter";
    return table.add(std::move(record));
  }

  Status now{.site = "branch",
             .version = "0.1.0",
             .uptime = std::chrono::seconds{90},
             .flows_limit = 16'384,
             .handshakes = 1,
             .handshakes_limit = 64,
             .memory_bytes = 3 << 20,
             .memory_limit_bytes = 512 << 20,
             .memory_parts = {{"credit", 1 << 20, 90 << 20}, {"ahead", 2 << 20, 64 << 20}},
             .module_bytes = 1 << 20,
             .ahead_bytes = 2 << 20,
             .dictionary_bytes = 64 << 20,
             .dictionary_limit_bytes = 680 << 20,
             .intercept = InterceptState::down,
             .bypassed = {{"over_rate", 7}},
             .intercept_error = {},
             .disk = cache::StoreCounters{.ready = true,
                                          .cap_bytes = 4ull << 30,
                                          .disk_bytes = 1ull << 30,
                                          .segments = 260,
                                          .put_bytes = 1ull << 30,
                                          .refused = 2,
                                          .damaged = 1,
                                          .load_bytes = 3 << 20},
             .links = {}};
  flows::FlowTable table;
  flows::RecentTalkers talkers;
  History past;
  config::Features in_force = config::standard_features(modules::feature_table());
  config::Features in_file = in_force;
  Cleared cache{.memory_bytes = 1 << 20,
                .disk_bytes = 5 << 20,
                .peers = {{"datacenter", 7 << 20}, {"b", {}}},
                .disk_key = cache::ClearedKey::destroyed};
  bool fail_closed = false;
  std::string mistake;  // in the configuration, for a reload
};

inline link::LinkStatus link_up(std::string peer) {
  link::LinkStatus link;
  link.peer = std::move(peer);
  link.state = link::LinkState::up;
  link.carrier = "tcp";
  link.remote_address = "10.10.100.2:7600";
  link.smoothed_rtt = std::chrono::microseconds{100'250};
  link.state_age = std::chrono::seconds{3720};
  link.streams = 3;
  link.bytes_sent = 1'500'000;
  link.bytes_received = 2'500'000;
  link.delivery_rate_bits = 51'840'000;
  link.carriers_attached = 1;
  link.udp.state = link::UdpState::up;
  link.udp.packets_sent = 2000;
  link.udp.packets_lost = 20;
  link.udp.pacing_rate_bits = 48'000'000;
  link.udp.rate_law = "limited";
  link.udp.rate_phase = "cruise";
  link.udp.line_rate_bits = 48'100'000;
  link.udp.base_rtt = std::chrono::microseconds{99'000};
  link.udp.queue = std::chrono::microseconds{1'250};
  link.reduces = true;
  link.reduction.encoder.blocks = 20;
  link.reduction.encoder.bytes = {.plain_bytes = 1'000'000,
                                  .after_dedup_bytes = 80'000,
                                  .encoded_bytes = 50'000,
                                  .copies = 12,
                                  .copied_bytes = 920'000};
  link.reduction.encoder.hits.back() = 12;
  link.reduction.encoder.ring_bytes = 256 << 20;
  link.reduction.encoder.ring_filled_bytes = 64 << 20;
  link.reduction.decoder.needs = 3;
  return link;
}

inline const std::string kTestToken = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

// The API on a thread of its own. `daemon` may be touched before `start` and through `on_loop`.
class RunningApi {
 public:
  explicit RunningApi(ServerLimits limits = {}, const std::string& host = "127.0.0.1")
      : server_(loop_, daemon, kTestToken, {host, 0}, limits) {
    daemon.now.links.push_back(link_up("datacenter"));
  }
  ~RunningApi() {
    if (!thread_.joinable()) return;
    boost::asio::post(loop_, [this] { server_.stop(); });
    thread_.join();
  }
  RunningApi& start() {
    boost::asio::co_spawn(loop_, server_.run(), boost::asio::detached);
    thread_ = std::thread([this] { loop_.run(); });
    return *this;
  }
  // Runs `action` on the loop and returns what it returns.
  template <class Action>
  auto on_loop(Action action) {
    std::packaged_task<decltype(action())()> task(std::move(action));
    auto result = task.get_future();
    boost::asio::post(loop_, [&task] { task(); });
    return result.get();
  }
  boost::asio::any_io_executor executor() { return loop_.get_executor(); }
  boost::asio::ip::tcp::endpoint endpoint() const { return server_.endpoint(); }
  std::string port() const { return std::to_string(endpoint().port()); }
  ApiCounters counters() {
    return on_loop([this] { return server_.counters(); });
  }

  FakeDaemon daemon;

 private:
  boost::asio::io_context loop_{1};
  Server server_;
  std::thread thread_;
};

}  // namespace longhaul::control
