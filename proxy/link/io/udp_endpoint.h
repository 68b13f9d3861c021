// SPDX-License-Identifier: Apache-2.0
// One UDP socket for all carriers of a site, or for one peer that is dialled: many datagrams in one system
// call, each passed to the carrier with its connection id. The carrier authenticates packets and decides what
// to send.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codecs/keyed_hash.h"
#include "codecs/result.h"
#include "proxy/link/io/udp_socket.h"
#include "proxy/link/types.h"
#include "proxy/link/udp/datagram_batch.h"

namespace longhaul::link::udp {

class UdpEndpoint {
 public:
  static constexpr std::size_t kConnectionIdBytes = 8;  // behind the flags byte
  using IdBytes = std::span<const std::byte, kConnectionIdBytes>;

  struct Arrival {
    UdpAddress from;
    boost::asio::ip::address to;  // of this host, that the sender used; unspecified where nobody asked for it
    TimePoint at;                 // the kernel's arrival time, if it reports one; otherwise `now`
    TimePoint now;                // when it was read
  };

  class Receiver {
   public:
    virtual ~Receiver() = default;
    // May be decrypted in place. Nothing may be added to or removed from the endpoint here.
    virtual void on_datagram(std::span<std::byte> datagram, const Arrival& arrival) = 0;
    // All datagrams that the socket had were delivered: the time to answer.
    virtual void on_turn_end() = 0;
    // send() said `busy`, and there is room again.
    virtual void on_writable() = 0;
  };

  enum class Sent : std::uint8_t {
    yes,
    busy,       // what is left in the batch is to be sent when the receiver is told
    too_large,  // for the first hop; the batch is gone
    refused,    // no route, a firewall of this host, no memory: treated as lost on the way
  };

  using Answers = UdpAnswers;

  struct Counters {
    std::uint64_t datagrams_sent = 0, datagrams_received = 0;
    std::uint64_t sends = 0, receives = 0;  // system calls
    std::uint64_t unknown = 0;              // for no carrier here: dropped, not answered, not logged
    std::uint64_t refused = 0;
  };

  // `interface`: all datagrams leave and arrive there; empty: by the route.
  static Result<std::unique_ptr<UdpEndpoint>> open(boost::asio::io_context& io, const UdpAddress& at,
                                                   Answers answers, const std::string& interface = {});
  ~UdpEndpoint();
  UdpEndpoint(const UdpEndpoint&) = delete;
  UdpEndpoint& operator=(const UdpEndpoint&) = delete;

  // `receiver` gets the datagrams with this id, until remove().
  void add(IdBytes id, Receiver& receiver);
  void remove(IdBytes id, Receiver& receiver);

  // Sends from `source`, or by the route if that is unspecified. Clears the batch unless `busy`.
  Sent send(DatagramBatch& batch, const boost::asio::ip::address& source, Receiver& waiter);

  std::uint16_t port() const { return local_.port(); }
  const UdpAddress& local() const { return local_; }
  bool segments_in_kernel() const { return kernel_segments_; }
  // Behaves like a kernel or device without segmentation; the kernel's own refusal has the same effect.
  void segment_here() { kernel_segments_ = false; }
  const Counters& counters() const { return counters_; }

 private:
  UdpEndpoint(boost::asio::ip::udp::socket socket, UdpAddress local);
  void wait_readable();
  void on_readable();
  void end_turn();
  TimePoint arrival_of(std::chrono::nanoseconds late, TimePoint now) const;
  void dispatch(std::span<std::byte> bytes, std::size_t segment, const Arrival& arrival);
  void wait_writable(Receiver& waiter);
  Sent send_segmented(DatagramBatch& batch, const boost::asio::ip::address& source);
  Sent send_each(DatagramBatch& batch, const boost::asio::ip::address& source);
  Sent outcome_of(int error);

  boost::asio::ip::udp::socket socket_;
  UdpAddress local_;
  bool kernel_segments_ = true;
  KeyedMap<std::uint64_t, Receiver*> receivers_;
  std::vector<Receiver*> told_;  // in this turn; null: removed since
  std::vector<Receiver*> waiters_;
  bool waiting_writable_ = false;
  TimePoint drained_at_{};              // nothing was left in the socket
  std::shared_ptr<UdpEndpoint*> self_;  // emptied at the end, so that late handlers know
  Counters counters_;
};

}  // namespace longhaul::link::udp
