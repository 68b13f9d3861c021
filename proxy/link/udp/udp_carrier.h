// SPDX-License-Identifier: Apache-2.0
// Carries a session's frames in datagrams: the contents of packets, acknowledgement, loss, retransmission and
// rate. A state machine: datagrams and time in, batches of datagrams and deadlines out; sockets are
// udp_endpoint.h's, which path is used is PeerLink's decision.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "proxy/link/session.h"
#include "proxy/link/status.h"
#include "proxy/link/udp/burst_losses.h"
#include "proxy/link/udp/carrier_frames.h"
#include "proxy/link/udp/datagram_batch.h"
#include "proxy/link/udp/measured_law.h"
#include "proxy/link/udp/pacer.h"
#include "proxy/link/udp/packet.h"
#include "proxy/link/udp/packet_contents.h"
#include "proxy/link/udp/packet_fec.h"
#include "proxy/link/udp/path_mtu.h"
#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/received_packets.h"
#include "proxy/link/udp/sent_packets.h"

namespace longhaul::link::udp {

struct UdpCarrierConfig {
  Side side = Side::dialler;  // of the control connection that the keys come from
  CarrierKeys keys;           // of both directions, with the connection ids
  Cipher cipher = Cipher::aes_128_gcm;
  UdpAddress peer;              // unspecified: the acceptor learns it from the first packet that is authentic
  std::uint64_t rate_bits = 0;  // configured rate of this side, IP bytes; 0: measure
  std::uint64_t most_bits = 0;  // upper bound of the measured rate; 0: no bound
  std::optional<PathMemory> path{};        // measured on this path by an earlier carrier
  PacketLimits limits{};                   // of the keys
  std::function<CarrierId()> new_carrier;  // names for the session, never used twice
};

class UdpCarrier {
 public:
  enum class State : std::uint8_t {
    probing,  // not known to work: only probes, while the session sends elsewhere
    up,       // packets are acknowledged: may be preferred
    failed,   // nothing was acknowledged for too long; data in flight was returned to the session
  };

  // The session outlives the carrier. It is attached at once, so that the peer's packets are accepted, and
  // preferred only by prefer().
  UdpCarrier(UdpCarrierConfig config, Session& session, TimePoint now);
  ~UdpCarrier();
  UdpCarrier(const UdpCarrier&) = delete;
  UdpCarrier& operator=(const UdpCarrier&) = delete;

  // The id that stands in the packets for us; an endpoint finds this carrier by it.
  const ConnectionId& own_id() const { return opener_.id(); }

  // Takes one datagram; decrypts in place. An error is the peer's violation of the protocol, by then the
  // session is abandoned; a packet that is not authentic is dropped and counted, and is no error. `arrived`
  // is when it reached this host, which may have been busy until `now`: so that local delay does not count as
  // the line's.
  Result<void> receive(MutableBytes datagram, const UdpAddress& from, TimePoint arrived, TimePoint now);
  Result<void> receive(MutableBytes datagram, const UdpAddress& from, TimePoint now) {
    return receive(datagram, from, now, now);
  }

  // Fills `batch` with packets that may be sent now; false: none. Call it until it returns false, after
  // receive(), on_timeout() and whenever the session got data to send.
  bool transmit(DatagramBatch& batch, TimePoint now);

  std::optional<TimePoint> next_timeout() const;
  void on_timeout(TimePoint now);

  State state() const { return state_; }
  // A limit of the keys is reached, and the carrier has failed for good: only a new control connection brings
  // new ones.
  bool keys_worn_out() const { return keys_worn_out_; }
  // The session sends here from now on, or no longer. Only a carrier that is up can be preferred.
  void prefer(TimePoint now);
  // Starts to probe again after `failed`, or checks at once whether the path still works.
  void probe(TimePoint now);
  // A refused or too large datagram was reported by the socket (ICMP, EMSGSIZE).
  void on_too_large(std::size_t datagram_bytes, TimePoint now);

  // As configured.
  void set_rate(std::uint64_t rate_bits, std::uint64_t most_bits, TimePoint now);
  void set_fec(const config::Features& features);

  const UdpAddress& peer() const { return config_.peer; }
  Duration smoothed_rtt() const;
  // The peer was alive at that time, at least: data that it sent before may arrive any time later.
  TimePoint peer_lived_at() const { return sent_.newest_acknowledged(); }
  Duration minimum_rtt() const { return sent_.rtt().lasting_minimum(); }
  std::uint64_t pacing_rate_bits() const;
  RateView rate_view() const { return law_->view(); }
  std::uint64_t delivery_rate() const { return delivery_rate_; }  // bytes a second; 0: not yet known
  std::optional<PathMemory> path_memory() const;
  std::size_t path_mtu() const { return mtu_.current(); }  // of UDP payload
  // Packets leave one by one, for that reason.
  bool drops_bursts() const { return bursts_.drops_bursts(); }
  double loss_rate() const { return fec_.erasure_rate(); }
  UdpCounters counters() const;

 private:
  bool build_packet(std::size_t limit, Buffer& out, TimePoint now);
  std::size_t ask_at_end(std::size_t at, std::size_t end, SentContent& content, Buffer& out, TimePoint now);
  void write_ack(SentContent& content, bool only_if_small, Buffer& out, TimePoint now);
  bool write_payload(std::size_t end, std::size_t protected_end, SentContent& content, Buffer& out,
                     TimePoint now);
  bool send_probe(std::size_t datagram_bytes, PacketKind kind, DatagramBatch& batch, TimePoint now);
  bool send_path_frame(DatagramBatch& batch, TimePoint now);
  bool finish_packet(std::size_t start, PacketKind kind, std::uint32_t handle, Buffer& out, TimePoint now);
  bool may_send_data(TimePoint now);
  bool has_data(TimePoint now) const;
  // The latest time for an ACK: together with data that only waits for the pacer, if that is soon.
  std::optional<TimePoint> ack_at() const;
  bool goes_beside_data() const;

  Result<void> take_frames(Bytes payload, PacketNumber number, bool restored, AckAsk& ask, TimePoint now);
  Result<void> take_carrier_frame(CarrierFrameType type, Bytes body, Bytes behind, PacketNumber number,
                                  AckAsk& ask, TimePoint now);
  Result<void> take_restored(AckAsk& ask, TimePoint now);
  void settle(TimePoint now);
  void lose(const PacketFate& fate, TimePoint now);
  void release(PacketContents::Handle handle);
  void note_address(const UdpAddress& from, PacketNumber number, TimePoint now);
  void came_up(TimePoint now);
  void fail(TimePoint now);
  void wear_out(TimePoint now);
  Duration patience() const;
  std::uint32_t ip_bytes(std::size_t datagram_bytes) const {
    return static_cast<std::uint32_t>(datagram_bytes) + head_bytes_;
  }
  void set_peer(const UdpAddress& peer);
  void start_law(TimePoint now);
  void follow_law(TimePoint now);

  UdpCarrierConfig config_;
  std::uint32_t head_bytes_;  // of UDP and IP, to config_.peer
  Session& session_;
  CarrierId id_;
  State state_ = State::probing;
  UdpCounters counters_;
  BurstLosses bursts_;
  TimePoint last_now_;   // of the latest call
  TimePoint arrived_{};  // what is being received

  PacketSealer sealer_;
  PacketOpener opener_;
  ReceivedPackets received_;
  SentPackets sent_;
  SentEvents events_;  // kept for their capacity
  PacketContents contents_;
  PathMtu mtu_;
  std::uint64_t mtu_probe_bytes_ = 0;  // in flight, IP bytes
  std::unique_ptr<RateLaw> law_;
  MeasuredLaw* measured_ = nullptr;  // law_, while it measures
  Pacer pacer_;
  PacketFec fec_;
  fec::Mode fec_mode_;          // of what belongs to no stream
  RecoveredNumbers recovered_;  // to be told with the next ACK

  PacketNumber end_received_ = 0;                   // one more than the highest number that came
  std::optional<TimePoint> asked_acknowledgement_;  // of an ACK that says much
  std::optional<TimePoint> probe_at_;               // while probing
  Duration probe_interval_{};
  TimePoint probing_until_{};
  unsigned probes_owed_ = 0;  // packets to be sent beyond the window
  std::optional<TimePoint> asked_at_end_;
  bool newest_has_bytes_ = false;  // of streams, the newest packet of the session's
  std::optional<PacketContents::Handle> newest_data_;
  std::optional<TimePoint>
      awaiting_since_;                // a packet that asks for an ACK is in flight, and none came since
  std::optional<TimePoint> send_at_;  // the pacer's time, while there is data to send
  std::optional<TimePoint> data_at_;  // the same, if that is data of the session
  bool keys_worn_out_ = false;
  std::uint64_t delivery_rate_ = 0;

  std::optional<UdpAddress> candidate_;  // the peer seems to have moved there
  std::optional<PathToken> challenge_;   // sent there, not answered yet
  bool challenge_due_ = false;
  std::optional<TimePoint> challenged_at_;
  struct Response {
    PathToken token;
    UdpAddress to;
  };
  std::optional<Response> response_;
  UdpAddress heard_from_;  // the packet being read
};

}  // namespace longhaul::link::udp
