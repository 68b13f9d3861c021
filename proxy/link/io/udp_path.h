// SPDX-License-Identifier: Apache-2.0
// Drives a carrier with its endpoint and a timer, with bounded work per turn of the loop. udp_paths.h chooses
// the path.
#pragma once
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "proxy/link/io/udp_endpoint.h"
#include "proxy/link/udp/udp_carrier.h"

namespace longhaul::link::udp {

class UdpPath;

// The owner of the path. Both are called from the event loop, never from inside the path's own methods, and
// may destroy it.
class UdpPathOwner {
 public:
  virtual ~UdpPathOwner() = default;
  // The session received or sent bytes: events may be waiting, deadlines and the carrier's state may have
  // moved.
  virtual void after_path_activity() = 0;
  // The peer violated the protocol, and the session was abandoned.
  virtual void on_path_breach(UdpPath& path, const std::string& why) = 0;
};

// How late the event loop's timer was, which limits the accuracy of pacing on a busy machine.
struct TimerLateness {
  std::uint64_t times = 0;
  Duration sum{}, worst{};

  TimerLateness& operator+=(const TimerLateness& more) {
    times += more.times;
    sum += more.sum;
    worst = std::max(worst, more.worst);
    return *this;
  }
};

class UdpPath final : private UdpEndpoint::Receiver {
 public:
  // Endpoint, session and owner outlive the path.
  UdpPath(boost::asio::io_context& io, UdpEndpoint& endpoint, UdpCarrierConfig config, Session& session,
          UdpPathOwner& owner);
  ~UdpPath() override;
  UdpPath(const UdpPath&) = delete;
  UdpPath& operator=(const UdpPath&) = delete;

  // There may be data to send: sends it at the end of this turn of the event loop.
  void kick();

  UdpCarrier& carrier() { return carrier_; }
  const UdpCarrier& carrier() const { return carrier_; }
  UdpEndpoint& endpoint() { return endpoint_; }
  const TimerLateness& lateness() const { return lateness_; }

 private:
  void on_datagram(std::span<std::byte> datagram, const UdpEndpoint::Arrival& arrival) override;
  void on_turn_end() override;
  void on_writable() override;

  void turn();
  bool transmit();
  void arm_timer();
  void on_timer(TimePoint due);
  void fail(std::string why);

  UdpEndpoint& endpoint_;
  Session& session_;
  UdpPathOwner& owner_;
  UdpCarrier carrier_;
  boost::asio::ip::address source_;  // our address that the peer uses; unspecified: by the routing table
  DatagramBatch batch_;
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> timer_at_;
  std::uint64_t timer_number_ = 0;  // of the last wait; the handler of an earlier one may still run
  bool kicked_ = false, busy_ = false, failed_ = false;
  bool reads_first_ = false;  // the timer came very late, and waits until the socket has been read
  TimerLateness lateness_;
  std::shared_ptr<UdpPath*> self_;  // points to null at the end, for late handlers
};

}  // namespace longhaul::link::udp
