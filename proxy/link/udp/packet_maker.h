// SPDX-License-Identifier: Apache-2.0
// Makes a carrier's packets: acknowledgements, probes, repairs, and the session's data, as far as rate and
// window allow. The carrier makes batches, and decides whether the path works.
#pragma once
#include <optional>

#include "proxy/link/udp/carrier_rate.h"
#include "proxy/link/udp/packet.h"
#include "proxy/link/udp/packet_fec.h"
#include "proxy/link/udp/packets_in_flight.h"
#include "proxy/link/udp/path_health.h"

namespace longhaul::link::udp {

class PacketMaker {
 public:
  // All references outlive this object.
  PacketMaker(PacketSealer& sealer, Outgoing& outgoing, PacketsInFlight& flight, ReceivedPackets& received,
              PacketFec& fec, CarrierRate& rate, PathHealth& health)
      : sealer_(sealer),
        outgoing_(outgoing),
        flight_(flight),
        received_(received),
        fec_(fec),
        rate_(rate),
        health_(health) {}

  // The session's id of the carrier.
  void set_carrier(CarrierId id) { carrier_ = id; }
  // For frames that belong to no stream.
  void set_fec_mode(fec::Mode mode) { fec_mode_ = mode; }

  // Appends one packet of at most `limit` bytes. Returns false if there is nothing to send, if it is too
  // early (see wake_at()), or if no key is left.
  bool make(std::size_t limit, Buffer& out, TimePoint now);
  bool make_probe(std::size_t datagram_bytes, PacketKind kind, Buffer& out, TimePoint now);
  // Makes a packet of the frames in `out`, which follow the room for the header.
  bool make_from(Buffer& out, TimePoint now);

  // That many packets that require an acknowledgement are to be sent regardless of the window. The last one
  // is no larger than what every path carries: perhaps this one drops the larger ones. Its acknowledgement
  // comes behind theirs, so a queue that overflowed is not taken for that.
  void owe_probes(unsigned count) { probes_owed_ = std::max(probes_owed_, count); }
  void owe_probe() { ++probes_owed_; }
  // The packet was restored by error correction; the next ACK reports it.
  void on_restored(PacketNumber number) {
    if (recovered_.size() < recovered_.capacity()) recovered_.push_back(number);
  }
  void on_failed();
  bool keys_worn_out() const { return keys_worn_out_; }

  // ---- Time.
  // To be called before the packets of a batch.
  void begin_batch() {
    send_at_.reset();
    data_at_.reset();
  }
  // The latest time for an ACK: with data that waits only for the pacer, if that is soon.
  std::optional<TimePoint> ack_at() const;
  // When the pacer allows the next packet, if there is anything to send.
  std::optional<TimePoint> send_at() const { return send_at_; }

  std::uint64_t packets_sent() const { return packets_sent_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t repairs_sent() const { return repairs_sent_; }

 private:
  bool is_up() const { return health_.state() == PathHealth::State::up; }
  bool has_data(TimePoint now) const { return is_up() && outgoing_.wants_to_transmit(carrier_, now); }
  bool may_send_data(TimePoint now);
  bool ack_fits_beside_data() const;
  std::optional<RepairFrame> next_repair(bool data_waits, TimePoint now);
  void write_ack(SentContent& content, bool only_if_small, Buffer& out, TimePoint now);
  bool write_payload(std::size_t end, std::size_t protected_end, SentContent& content, Buffer& out,
                     TimePoint now);
  std::size_t ask_at_end(std::size_t at, std::size_t end, SentContent& content, Buffer& out, TimePoint now);
  bool finish(std::size_t start, PacketKind kind, std::uint32_t handle, Buffer& out, TimePoint now);

  PacketSealer& sealer_;
  Outgoing& outgoing_;
  PacketsInFlight& flight_;
  ReceivedPackets& received_;
  PacketFec& fec_;
  CarrierRate& rate_;
  PathHealth& health_;
  CarrierId carrier_;
  fec::Mode fec_mode_{};
  RecoveredNumbers recovered_;

  unsigned probes_owed_ = 0;
  std::optional<TimePoint> asked_acknowledgement_;  // for an ACK with many ranges
  std::optional<TimePoint> asked_at_end_;
  bool newest_has_bytes_ = false;     // the newest packet of the session has bytes of streams
  std::optional<TimePoint> send_at_;  // set by the pacer, if there is anything to send
  std::optional<TimePoint> data_at_;  // the same, if that is data of the session
  bool keys_worn_out_ = false;
  std::uint32_t repair_room_ = 0;  // bytes of repairs that may be sent although data waits
  std::uint64_t packets_sent_ = 0, bytes_sent_ = 0, repairs_sent_ = 0;
};

}  // namespace longhaul::link::udp
