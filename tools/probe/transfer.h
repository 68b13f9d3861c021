// SPDX-License-Identifier: Apache-2.0
// One TCP transfer, or one train of UDP packets, seen from either end: the same code on console and agent.
// agent.h and rfc6349.h assign the roles.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/json.hpp>
#include <chrono>

namespace longhaul::probe {

namespace asio = boost::asio;

struct Sent {
  std::uint64_t sent = 0;  // TCP payload, what was sent again included
  std::uint64_t again = 0;
  double mean_rtt_us = 0;  // of samples every 20 ms, while it sent
  double least_rtt_us = 0;
  unsigned mss = 0;
  bool timestamps = false;
  std::string congestion_control;
};
boost::json::object to_json(const Sent& sent);
Sent read_sent(const boost::json::object& message);  // throws Trouble

struct Received {
  std::uint64_t bytes = 0;
  double seconds = 0;  // from the connection to its end
  std::vector<std::uint64_t> each_second;
};
boost::json::object to_json(const Received& received);
Received read_received(const boost::json::object& message);

// Sends for so long, and returns when the other side has taken all and closed.
asio::awaitable<Sent> send_for(asio::ip::tcp::socket socket, std::chrono::milliseconds time);
// To the end of the stream; closes then. Trouble after `most`.
asio::awaitable<Received> receive_all(asio::ip::tcp::socket socket, std::chrono::milliseconds most);

struct Train {
  unsigned packets = 0;
  std::uint64_t ip_bytes = 0;  // after the first packet
  double seconds = 0;          // from the first to the last
  double bits_per_second() const { return seconds > 0 ? static_cast<double>(ip_bytes) * 8 / seconds : 0; }
};
constexpr unsigned kTrainPackets = 60;
void send_train(asio::ip::udp::socket& connected);
// What arrives until it is quiet for a while, at most so long; without those short packets that open a way
// through NAT.
asio::awaitable<Train> receive_train(asio::ip::udp::socket& socket, std::chrono::milliseconds most);
inline constexpr std::size_t kHello = 4;  // bytes of such a short packet

}  // namespace longhaul::probe
