// SPDX-License-Identifier: Apache-2.0
// Carries a session's frames in datagrams: joins the packets that are made and read, their acknowledgement
// and loss, the rate, and whether the path works. A state machine: datagrams and time in, batches of
// datagrams and deadlines out; sockets are udp_endpoint.h's, which path is used is PeerLink's decision.
#pragma once
#include <functional>
#include <optional>

#include "proxy/link/session.h"
#include "proxy/link/status.h"
#include "proxy/link/udp/batch_maker.h"
#include "proxy/link/udp/overdue_answer.h"
#include "proxy/link/udp/packet_reader.h"

namespace longhaul::link::udp {

// What may change while the carrier exists.
struct UdpSettings {
  std::uint64_t rate_bits = 0;  // that this side may send, IP bytes; 0: measure
  std::uint64_t most_bits = 0;  // a measured rate is never more than this; 0: no limit
  config::Fec fec{};            // for frames that belong to no stream
  bool operator==(const UdpSettings&) const = default;
};

struct UdpCarrierConfig {
  Side side = Side::dialler;  // of the control connection that the keys come from
  CarrierKeys keys;           // of both directions, with the connection ids
  Cipher cipher = Cipher::aes_128_gcm;
  UdpAddress peer;  // unspecified: the acceptor learns it from the first packet that is authentic
  UdpSettings settings{};
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
  Result<void> receive(MutableBytes datagram, const UdpAddress& from, TimePoint now,
                       std::optional<TimePoint> arrived = {});

  // Fills `batch` with packets that may be sent now; false: none. Call it until it returns false, after
  // receive(), on_timeout() and whenever the session got data to send.
  bool transmit(DatagramBatch& batch, TimePoint now);

  std::optional<TimePoint> next_timeout() const;
  void on_timeout(TimePoint now);
  // This process did not run for so long, which is no silence of the path. Call it before on_timeout(), and
  // that only after what arrived meanwhile has been received.
  void on_stall(Duration stall, TimePoint now);

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
  // Whether the path seems to be lost; with a deadline for that if it is watched, because other paths can
  // take over.
  OverdueAnswer& overdue() { return overdue_; }
  // Of what streams with little in flight have here (Outgoing::copy_on()).
  void copy_in_flight(TimePoint now) { flight_.copy_all(session_.outgoing(), now); }
  // Another path takes over what is in flight here; this one is probed until it works again.
  void give_way(TimePoint now);
  // A refused or too large datagram was reported by the socket (ICMP, EMSGSIZE).
  void on_too_large(std::size_t datagram_bytes, TimePoint now);

  void set(const UdpSettings& settings, TimePoint now);

  const UdpAddress& peer() const { return address_.current(); }
  const RttEstimator& rtt() const { return flight_.sent().rtt(); }
  const CarrierRate& rate() const { return rate_; }
  const PacketsInFlight& flight() const { return flight_; }
  double loss_rate() const { return fec_.erasure_rate(); }
  UdpCounters counters() const;

 private:
  // PacketReader::Carrier
  void on_acknowledged(TimePoint now) override { settle(now); }
  void on_probed(TimePoint now) override;

  void note_address(const UdpAddress& from, PacketNumber number, TimePoint now);
  void settle(TimePoint now);

  void tell_line_rate();
  void give_up(TimePoint now);
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
  OverdueAnswer overdue_{flight_, health_};
  PacketMaker maker_;
  BatchMaker batches_;
  PacketReader reader_;
  bool keys_worn_out_ = false;
};

}  // namespace longhaul::link::udp
