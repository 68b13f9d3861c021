// SPDX-License-Identifier: Apache-2.0
// Carries a session's frames in datagrams: joins the packets that are made and read, their acknowledgement
// and loss, the rate, and whether the path works. A state machine: datagrams and time in, batches of
// datagrams and deadlines out; sockets are udp_endpoint.h's, which path is used is PeerLink's decision.
#pragma once
#include <functional>
#include <optional>

#include "proxy/link/session.h"
#include "proxy/link/status.h"
#include "proxy/link/udp/datagram_batch.h"
#include "proxy/link/udp/packet_reader.h"

namespace longhaul::link::udp {

struct UdpCarrierConfig {
  Side side = Side::dialler;  // of the control connection that the keys come from
  CarrierKeys keys;           // of both directions, with the connection ids
  Cipher cipher = Cipher::aes_128_gcm;
  UdpAddress peer;              // unspecified: the acceptor learns it from the first packet that is authentic
  std::uint64_t rate_bits = 0;  // that this side may send, IP bytes; 0: measure
  std::uint64_t most_bits = 0;  // a measured rate is never more than this; 0: no limit
  std::optional<PathMemory> path{};        // what an earlier carrier found on this path
  PacketLimits limits{};                   // of the keys
  std::function<CarrierId()> new_carrier;  // names for the session, never used twice
};

class UdpCarrier final : private PacketReader::Carrier {
 public:
  using State = PathHealth::State;

  // The session outlives the carrier. It is attached at once, so that the peer's packets are accepted, and
  // preferred only by prefer().
  UdpCarrier(UdpCarrierConfig config, Session& session, TimePoint now);
  ~UdpCarrier() override;
  UdpCarrier(const UdpCarrier&) = delete;
  UdpCarrier& operator=(const UdpCarrier&) = delete;

  // The id that stands in the packets to this side; an endpoint finds this carrier by it.
  const ConnectionId& own_id() const { return opener_.id(); }

  // Takes one datagram; decrypts in place. An error is the peer's breach of the protocol, by then the session
  // is abandoned; anything that is not authentic is dropped, counted, and no error.
  // `arrived` is when it came to this host, which may have been busy until `now`: only with it the line's
  // delay does not look longer than it is.
  Result<void> receive(MutableBytes datagram, const UdpAddress& from, TimePoint arrived, TimePoint now);
  Result<void> receive(MutableBytes datagram, const UdpAddress& from, TimePoint now) {
    return receive(datagram, from, now, now);
  }

  // Fills `batch` with packets that may be sent now; false: none. Call it until it returns false, after
  // receive(), on_timeout() and whenever the session got data to send.
  bool transmit(DatagramBatch& batch, TimePoint now);

  std::optional<TimePoint> next_timeout() const;
  void on_timeout(TimePoint now);

  State state() const { return health_.state(); }
  // A limit of the keys is reached, and the carrier has failed for good: only a new control connection brings
  // new ones.
  bool keys_worn_out() const { return keys_worn_out_; }
  // The session sends here from now on, or no longer. Only a carrier that is up can be preferred.
  void prefer(TimePoint now);
  // Starts to probe again after `failed`, or checks at once whether the path still works.
  void probe(TimePoint now);
  // The session has another carrier, which may do better. Without one, a path that is up fails after a time
  // without an acknowledgement; with one, only if that one answers meanwhile.
  void set_rival(bool there_is) { health_.set_rival(there_is); }
  bool in_doubt() const { return health_.in_doubt(); }
  void on_outdone(TimePoint now);
  CarrierId id() const { return id_; }  // the session's number for it, until it fails
  bool is_preferred() const { return session_.preferred() == id_; }
  // Beside the preferred carrier this one takes bytes of bulk streams (Session::set_helper()).
  void help(std::size_t backlog);
  void stop_helping() { session_.set_helper(id_, std::nullopt); }
  // Other paths can take over: the carrier has a deadline when it becomes late, and silent.
  void set_watched(bool watched) { watched_ = watched; }
  // The oldest packet in flight should have been acknowledged, and nothing was for as long as an ACK may
  // wait: perhaps the line only stands still for a moment, so nothing changes but that copies are sent on
  // another path.
  bool is_doubtful(TimePoint now) const;
  // Of what streams with little in flight have here (Outgoing::copy_on()).
  void copy_in_flight(TimePoint now) { flight_.copy_all(session_.outgoing(), now); }
  // An acknowledgement is overdue: a packet was lost, or the path.
  bool is_late(TimePoint now) const;
  // Nor were the probes acknowledged that were sent for that reason: it is the path.
  bool is_silent(TimePoint now) const { return waits(silent_after(), now); }
  // Another path takes over what is in flight here; this one is probed until it works again.
  void give_way(TimePoint now);
  // A refused or too large datagram was reported by the socket (ICMP, EMSGSIZE).
  void on_too_large(std::size_t datagram_bytes, TimePoint now);

  // As configured.
  void set_rate(std::uint64_t rate_bits, std::uint64_t most_bits, TimePoint now);
  void set_fec(const config::Features& features);

  const UdpAddress& peer() const { return address_.current(); }
  Duration smoothed_rtt() const { return rtt().smoothed(); }
  // The peer was there at that time, at least: what it sent before may come as late as it likes.
  TimePoint peer_lived_at() const { return flight_.sent().newest_acknowledged(); }
  Duration minimum_rtt() const { return rtt().lasting_minimum(); }
  std::uint64_t pacing_rate_bits() const { return 8 * rate_.bytes_per_second(); }
  RateView rate_view() const { return rate_.view(); }
  std::uint64_t delivery_rate() const {
    return rate_.delivered_per_second();
  }  // bytes a second; 0: not known
  std::optional<PathMemory> path_memory() const { return rate_.path_memory(); }
  std::size_t path_mtu() const { return flight_.mtu().current(); }  // of UDP payload
  // Packets leave one by one, for that reason.
  bool drops_bursts() const { return flight_.bursts().drops_bursts(); }
  double loss_rate() const { return fec_.erasure_rate(); }
  UdpCounters counters() const;

 private:
  const RttEstimator& rtt() const { return flight_.sent().rtt(); }
  Duration late_after() const;
  std::optional<TimePoint> doubtful_from() const;
  Duration silent_after() const;
  bool waits(Duration time, TimePoint now) const;
  void note_unanswered(bool answered, TimePoint now);

  // PacketReader::Carrier
  void on_acknowledged(TimePoint now) override { settle(now); }
  void on_probed(TimePoint now) override;

  void note_address(const UdpAddress& from, PacketNumber number, TimePoint now);
  void settle(TimePoint now);

  void tell_line_rate();
  void fail(TimePoint now);
  void wear_out(TimePoint now);

  std::function<CarrierId()> new_carrier_;
  Session& session_;
  CarrierId id_;
  UdpCounters counters_;
  TimePoint last_now_;  // of the latest call

  PacketSealer sealer_;
  PacketOpener opener_;
  PeerAddress address_;
  ReceivedPackets received_;
  PacketNumber end_received_;  // one more than the highest number that came
  PacketsInFlight flight_;
  CarrierRate rate_;
  PacketFec fec_;
  PathHealth health_;
  PacketMaker maker_;
  PacketReader reader_;
  bool keys_worn_out_ = false;
  bool small_probe_sent_ = false;  // the large one that belongs to it is to follow
  bool watched_ = false;
  std::optional<TimePoint> unanswered_since_;  // something is in flight, and nothing was acknowledged since
};

}  // namespace longhaul::link::udp
