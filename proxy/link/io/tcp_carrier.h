// SPDX-License-Identifier: Apache-2.0
// Carries a session's frames over one TLS connection: reads when the socket has bytes, and writes when the
// session has frames and the kernel has sent nearly all earlier data.
#pragma once
#include <boost/asio/ip/tcp.hpp>

#include "proxy/link/io/line_measure.h"
#include "proxy/link/io/tcp_socket.h"
#include "proxy/link/io/tls_connection.h"
#include "proxy/link/session.h"

namespace longhaul::link {

// The cause of a connection's end: the peer or its kernel, or unknown, as after a cut line.
enum class EndedBy : std::uint8_t { peer, other };

// The owner of the carrier. Both are called from the event loop, never from inside the carrier's own methods.
class CarrierOwner {
 public:
  virtual ~CarrierOwner() = default;
  // The session received or sent bytes: events may be waiting, deadlines may have moved.
  virtual void after_activity() = 0;
  virtual void on_carrier_closed(CarrierId id, const std::string& why,
                                 EndedBy by) = 0;  // destroys the carrier
};

// The rate limit for all peers together, shared equally by the links that are up.
struct TotalRate {
  std::uint64_t bits = 0;  // of IP packets per second; 0: no limit
  std::uint32_t links = 0;

  std::uint64_t share() const { return bits / std::max<std::uint32_t>(links, 1); }  // 0: no limit
};

class TcpCarrier {
 public:
  // `rate_bits`: the limit for this peer; 0: none. All references outlive the carrier.
  TcpCarrier(CarrierId id, TlsConnection connection, Session& session, CarrierOwner& owner,
             std::uint64_t rate_bits, TotalRate& total);
  ~TcpCarrier();
  TcpCarrier(const TcpCarrier&) = delete;
  TcpCarrier& operator=(const TcpCarrier&) = delete;

  void start();
  // The session may have data to send: sends it at the end of this turn of the event loop.
  void kick();
  // Sends whole frames at once, even if this carrier is not preferred. For a few frames now and then.
  void send(Bytes frames);
  // Sends the reason, if the socket accepts it at once, and closes. Does not call the owner.
  void close(CloseCode code, std::string text);

  CarrierId id() const { return id_; }
  const std::string& remote() const;
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  std::uint64_t delivery_rate() const { return rate_; }  // bytes per second; 0: not yet known

 private:
  void wait_readable();
  void on_readable();
  void flush();
  bool write_frames();
  bool send_pending();
  void wait_writable();
  void measure(TimePoint now);
  void bound_rate();
  void tell_line_rate();
  void fail(std::string why, EndedBy by = EndedBy::other);
  void fail(int error);

  CarrierId id_;
  TlsConnection connection_;
  Session& session_;
  CarrierOwner& owner_;
  std::uint64_t rate_bits_;
  TotalRate& total_;
  std::uint64_t bound_bits_ = 0;       // limit set on the socket
  std::shared_ptr<TcpCarrier*> self_;  // points to null at the end, for late handlers
  FrameBatch frames_;                  // not yet passed to TLS
  std::size_t sent_of_pending_ = 0;    // of tls().outgoing()
  bool kicked_ = false, waiting_writable_ = false, failed_ = false;
  std::uint64_t bytes_sent_ = 0, bytes_received_ = 0;
  std::uint64_t rate_ = 0;
  std::uint32_t low_water_ = 0;
  TimePoint measured_at_{};
};

}  // namespace longhaul::link
