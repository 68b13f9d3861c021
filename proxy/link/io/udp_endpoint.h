// SPDX-License-Identifier: Apache-2.0
// One UDP socket for all carriers of a site, or for one peer that this site dials. Reads and writes many
// datagrams per system call, and passes each to the carrier with its connection id. The carrier authenticates
// packets and decides what to send.
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
  static constexpr std::size_t kConnectionIdBytes = 8;  // after the flags byte
  using IdBytes = std::span<const std::byte, kConnectionIdBytes>;

  struct Arrival {
    UdpAddress from;
    boost::asio::ip::address to;  // this host's address that the sender used; unspecified if not requested
    TimePoint at;                 // the kernel's arrival time, if it reports one; otherwise `now`
    TimePoint now;                // when it was read
  };

  class Receiver {
   public:
    virtual ~Receiver() = default;
    // The datagram may be decrypted in place. Receivers may not be added to or removed from the endpoint
    // here.
    virtual void on_datagram(std::span<std::byte> datagram, const Arrival& arrival) = 0;
    // All available datagrams were delivered: the receiver may now send its responses.
    virtual void on_turn_end() = 0;
    // send() returned `busy`, and there is room again.
    virtual void on_writable() = 0;
  };

  enum class Sent : std::uint8_t {
    yes,
    busy,       // the rest of the batch must be sent in on_writable()
    too_large,  // too large for the first hop; the batch is dropped
    refused,    // no route, local firewall or no memory: treated as packet loss
  };

  using Answers = UdpAnswers;

  struct Counters {
    std::uint64_t datagrams_sent = 0, datagrams_received = 0;
    std::uint64_t sends = 0, receives = 0;  // system calls
    std::uint64_t unknown = 0;              // for no carrier here: dropped without a response or log line
    std::uint64_t refused = 0;
  };

  // `interface`: all datagrams use this interface; empty: by the routing table.
  static Result<std::unique_ptr<UdpEndpoint>> open(boost::asio::io_context& io, const UdpAddress& at,
                                                   Answers answers, const std::string& interface = {});
  ~UdpEndpoint();
  UdpEndpoint(const UdpEndpoint&) = delete;
  UdpEndpoint& operator=(const UdpEndpoint&) = delete;

  // `receiver` receives the datagrams with this id until remove().
  void add(IdBytes id, Receiver& receiver);
  void remove(IdBytes id, Receiver& receiver);

  // Sends from `source`, or as the routing table chooses if that is unspecified. Clears the batch unless
  // `busy`.
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
  std::vector<Receiver*> told_;  // receivers of this turn's datagrams; null if removed since
  std::vector<Receiver*> waiters_;
  bool waiting_writable_ = false;
  TimePoint drained_at_{};              // when the socket was last empty
  std::shared_ptr<UdpEndpoint*> self_;  // points to null at the end, for late handlers
  Counters counters_;
};

}  // namespace longhaul::link::udp
