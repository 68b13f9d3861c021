// SPDX-License-Identifier: Apache-2.0
// For each direction: trains for the capacity, then one transfer (RFC 6349 sections 3 and 4).
#include "tools/probe/rfc6349.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tools/measuring/trouble.h"
#include "tools/probe/agent.h"
#include "tools/probe/bound.h"
#include "tools/probe/table.h"

namespace longhaul::probe {
namespace {

using asio::ip::tcp;
using asio::ip::udp;
using measuring::Connection;
using measuring::Trouble;
using namespace std::chrono_literals;

constexpr int kTrains = 5;
constexpr double kTcpHeaderBytes = 20, kTimestampBytes = 12;

boost::json::object wish_for(const char* what, bool back) {
  boost::json::object wish;
  wish["do"] = what;
  wish["back"] = back;
  return wish;
}

asio::awaitable<double> one_train(Connection& agent, bool back) {
  const boost::json::object wish = wish_for("train", back);
  co_await agent.send(wish);
  const boost::json::object told = co_await agent.receive(10s);
  const auto port = static_cast<std::uint16_t>(measuring::number(told, "port", 1, 65'535));
  const auto executor = co_await asio::this_coro::executor;
  udp::socket socket(executor, udp::endpoint(agent.local_address(), 0));
  socket.connect(udp::endpoint(agent.remote_address(), port));
  Train train;
  if (back) {
    const std::array<char, kHello> knock{};
    boost::system::error_code ignored;
    for (int i = 0; i < 3; ++i) socket.send(asio::buffer(knock), 0, ignored);
    train = co_await receive_train(socket, 3s);
    (void)co_await agent.receive(20s);
  } else {
    send_train(socket);
    const boost::json::object found = co_await agent.receive(20s);
    train.packets = static_cast<unsigned>(measuring::number(found, "packets", 0, kTrainPackets));
    train.ip_bytes = static_cast<std::uint64_t>(measuring::number(found, "ip_bytes", 0, 1 << 30));
    train.seconds = static_cast<double>(measuring::number(found, "ns", 0, 1'000'000'000'000)) / 1e9;
  }
  co_return train.packets >= 10 ? train.bits_per_second() : 0;
}

// The median; the trains were as far apart on arrival as the slowest link sends them.
asio::awaitable<double> capacity_by_trains(Connection& agent, bool back) {
  std::vector<double> rates;
  for (int i = 0; i < kTrains; ++i) {
    const double rate = co_await one_train(agent, back);
    if (rate > 0) rates.push_back(rate);
  }
  if (rates.empty())
    throw Trouble("the capacity cannot be measured, because UDP packets do not arrive: give it with --rate");
  std::sort(rates.begin(), rates.end());
  co_return rates[rates.size() / 2];
}

struct Transferred {
  Sent sent;
  Received received;
};

asio::awaitable<Transferred> one_transfer(Connection& agent, bool back, std::chrono::milliseconds time) {
  boost::json::object wish = wish_for("tcp", back);
  wish["ms"] = time.count();
  co_await agent.send(wish);
  const boost::json::object told = co_await agent.receive(10s);
  const auto port = static_cast<std::uint16_t>(measuring::number(told, "port", 1, 65'535));
  const auto executor = co_await asio::this_coro::executor;
  tcp::socket socket(executor);
  const tcp::endpoint to(agent.remote_address(), port);
  boost::system::error_code refused;
  {
    const Bound bound(socket, 10s);
    const auto [error] = co_await socket.async_connect(to, asio::as_tuple(asio::use_awaitable));
    refused = error;
  }
  if (refused)
    throw Trouble("no connection to the agent's port " + std::to_string(port) +
                  ", which it opened for this transfer: a firewall must allow its dynamic ports");
  Transferred done;
  if (back) {
    done.received = co_await receive_all(std::move(socket), time + 60s);
    const boost::json::object found = co_await agent.receive(70s);
    done.sent = read_sent(found);
  } else {
    done.sent = co_await send_for(std::move(socket), time);
    const boost::json::object found = co_await agent.receive(70s);
    done.received = read_received(found);
  }
  co_return done;
}

boost::json::object to_json(const Figures& figures, const Transferred& done, const HostSettings& sender,
                            const HostSettings& receiver) {
  boost::json::object object{
      {"capacity_bps", figures.capacity_bits},
      {"achievable_bps", figures.achievable_bits},
      {"base_rtt_ms", figures.base_rtt_us / 1000},
      {"mean_rtt_ms", done.sent.mean_rtt_us / 1000},
      {"window_needed_bytes", figures.window_bytes},
      {"send_window_bytes", windows_of(sender).send},
      {"receive_window_bytes", windows_of(receiver).receive},
      {"bytes", done.received.bytes},
      {"seconds", done.received.seconds},
      {"throughput_bps", static_cast<double>(done.received.bytes) * 8 / done.received.seconds},
      {"ideal_seconds", figures.ideal_seconds},
      {"transfer_time_ratio", figures.transfer_time_ratio},
      {"efficiency", figures.efficiency},
      {"buffer_delay", figures.buffer_delay},
      {"bytes_sent", done.sent.sent},
      {"bytes_sent_again", done.sent.again},
      {"mss", done.sent.mss},
      {"congestion_control", done.sent.congestion_control}};
  boost::json::array seconds;
  for (const std::uint64_t bytes : done.received.each_second) seconds.emplace_back(bytes);
  object["bytes_each_second"] = seconds;
  return object;
}

asio::awaitable<HostSettings> far_settings(Connection& agent) {
  boost::json::object wish;
  wish["do"] = "options";
  co_await agent.send(wish);
  const boost::json::object answer = co_await agent.receive(10s);
  HostSettings settings;
  for (const auto& item : measuring::object(answer, "settings"))
    if (const auto* text = item.value().if_string()) settings[std::string(item.key())] = std::string(*text);
  co_return settings;
}

}  // namespace

Figures figures_of(double capacity_bits, double base_rtt_us, unsigned ip_header, const Sent& sent,
                   const Received& received) {
  Figures figures;
  figures.capacity_bits = capacity_bits;
  const double mss = std::max(1u, sent.mss);
  const double packet = mss + ip_header + kTcpHeaderBytes + (sent.timestamps ? kTimestampBytes : 0);
  figures.achievable_bits = capacity_bits * mss / packet;
  figures.base_rtt_us = base_rtt_us;
  figures.window_bytes = capacity_bits / 8 * base_rtt_us / 1e6;
  if (figures.achievable_bits > 0)
    figures.ideal_seconds = static_cast<double>(received.bytes) * 8 / figures.achievable_bits;
  if (figures.ideal_seconds > 0) figures.transfer_time_ratio = received.seconds / figures.ideal_seconds;
  if (sent.sent > 0)
    figures.efficiency = 1 - static_cast<double>(sent.again) / static_cast<double>(sent.sent);
  if (base_rtt_us > 0) figures.buffer_delay = std::max(0., sent.mean_rtt_us / base_rtt_us - 1);
  return figures;
}

asio::awaitable<boost::json::object> measure_tcp(TcpRequest request) {
  const measuring::Endpoint to = measuring::parse_endpoint(request.agent, kAgentPort);
  const measuring::Identity who = identity(request.token);
  Connection agent = co_await measuring::dial(to, who, 10s);
  const HostSettings far = co_await far_settings(agent);
  const HostSettings here = read_host_settings();
  const unsigned ip_header =
      agent.remote_address().is_v4() || agent.remote_address().to_v6().is_v4_mapped() ? 20 : 40;
  boost::json::object found;
  found["from"] = agent.local_address().to_string();
  found["to"] = agent.remote_address().to_string();
  for (const bool back : {false, true}) {
    if (request.direction == (back ? Direction::there : Direction::back)) continue;
    double capacity = request.rate_bits;
    if (capacity == 0) capacity = co_await capacity_by_trains(agent, back);
    const Transferred done = co_await one_transfer(agent, back, request.time);
    const Figures figures = figures_of(capacity, done.sent.least_rtt_us, ip_header, done.sent, done.received);
    boost::json::object one = to_json(figures, done, back ? far : here, back ? here : far);
    one["capacity_from"] = request.rate_bits == 0 ? "trains of UDP packets" : "--rate";
    found[back ? "back" : "there"] = std::move(one);
  }
  boost::json::object end;
  end["do"] = "end";
  co_await agent.send(end);
  co_return found;
}

void print_tcp(const boost::json::object& found, std::ostream& out) {
  out << "TCP between " << found.at("from").as_string().c_str() << " and "
      << found.at("to").as_string().c_str() << "\n\n";
  std::vector<std::vector<std::string>> rows{{""},
                                             {"capacity, IP"},
                                             {"  from"},
                                             {"shortest round trip"},
                                             {"window needed"},
                                             {"  the sender's settings allow"},
                                             {"  the receiver's settings allow"},
                                             {"achievable TCP throughput"},
                                             {"reached"},
                                             {"transfer-time ratio (1: ideal)"},
                                             {"TCP efficiency"},
                                             {"buffer delay"},
                                             {"congestion control, MSS"}};
  std::vector<std::string> remarks;
  for (const char* name : {"there", "back"}) {
    const auto* value = found.if_contains(name);
    if (value == nullptr) continue;
    const boost::json::object& one = value->as_object();
    const auto number = [&](const char* key) { return one.at(key).to_number<double>(); };
    const std::string cells[] = {
        name,
        rate_text(number("capacity_bps")),
        std::string(one.at("capacity_from").as_string()),
        fixed(number("base_rtt_ms"), 2) + " ms",
        fixed(number("window_needed_bytes"), 0) + " bytes",
        fixed(number("send_window_bytes"), 0),
        fixed(number("receive_window_bytes"), 0),
        rate_text(number("achievable_bps")),
        rate_text(number("throughput_bps")) + " in " + fixed(number("seconds"), 1) + " s",
        fixed(number("transfer_time_ratio"), 2),
        fixed(number("efficiency") * 100, 2) + " %",
        fixed(number("buffer_delay") * 100, 0) + " % (mean round trip " + fixed(number("mean_rtt_ms"), 1) +
            " ms)",
        std::string(one.at("congestion_control").as_string()) + ", " + fixed(number("mss"), 0)};
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(cells[i]);
    for (const auto& [side, key] :
         {std::pair{"sender", "send_window_bytes"}, std::pair{"receiver", "receive_window_bytes"}})
      if (number(key) < number("window_needed_bytes"))
        remarks.push_back(
            std::string(name) + ": the " + side +
            "'s settings limit the window; `longhaul-probe host --rtt " + fixed(number("base_rtt_ms"), 0) +
            " --rate " + fixed(number("capacity_bps") / 1000, 0) + "kbit` on that host shows what to change");
  }
  print_table(rows, out);
  if (!remarks.empty()) out << '\n';
  for (const std::string& remark : remarks) out << remark << '\n';
}

}  // namespace longhaul::probe
