// SPDX-License-Identifier: Apache-2.0
// Selects what a session sends next: control frames, then the control stream, then streams in turn. Serves
// reliable carriers (transmit) and carriers that lose packets (fill).
#pragma once
#include <optional>

#include "proxy/link/due_frames.h"
#include "proxy/link/frame_batch.h"
#include "proxy/link/packet_content.h"
#include "proxy/link/scheduler.h"
#include "proxy/link/second_copies.h"
#include "proxy/link/session_carriers.h"

namespace longhaul::link {

class Outgoing {
 public:
  // All references outlive this object.
  Outgoing(StreamContext& context, StreamTable& streams, ControlStream& control, DueFrames& due,
           const SessionCarriers& carriers)
      : context_(context), streams_(streams), control_(control), due_(due), carriers_(carriers) {}

  bool wants_to_transmit(CarrierId carrier, TimePoint now) const;
  // Appends whole frames to `out`, about `budget` bytes, or nothing if nothing waits. While several streams
  // wait, STREAM frames hold at most `chunk` bytes, so that a large one does not delay a small one.
  void transmit(CarrierId carrier, std::size_t budget, std::size_t chunk, FrameBatch& out, TimePoint now);
  void transmit(CarrierId carrier, std::size_t budget, std::size_t chunk, Buffer& out, TimePoint now);

  // ---- For carriers that lose packets. Appends whole frames, never more than `room` bytes, and adds to
  // `content` what on_lost() needs. May append nothing if the next frame needs more room; kMinPacketRoom
  // suffices for any.
  enum class Streams : std::uint8_t { all, interactive };
  void fill(CarrierId carrier, std::size_t room, Streams which, Buffer& out, PacketContent& content,
            TimePoint now);
  static constexpr std::size_t kMinPacketRoom = 1100;
  // The packet was lost: its content is sent again.
  void on_lost(CarrierId carrier, const PacketContent& content, TimePoint now);
  // The packet was declared lost but has arrived.
  void on_arrived(const PacketContent& content);
  // While `second` is a carrier, streams with little in flight send copies of their bytes on it.
  void copy_on(CarrierId second) { copies_.send_on(second); }
  // The same for bytes that are in flight already.
  void copy(const PacketContent& content, TimePoint now);
  // The class and features of the stream from which fill() for this carrier takes bytes next. Returns nullopt
  // if only control frames wait, or nothing at all for a helper.
  struct NextStream {
    StreamClass stream_class;
    const config::Features& features;
  };
  std::optional<NextStream> next_stream(CarrierId carrier);
  // Whether the peer has acknowledged all messages of the codec and of Session::allow().
  bool told_all() const { return control_.sending().all_acknowledged(); }

  // ---- The line.
  // The capacity of the carrier in use, in bytes per second: determines the size of first blocks, and how
  // much processor time blocks are worth.
  void set_line_rate(std::uint64_t bytes_per_second);
  std::uint64_t line_rate() const { return line_rate_; }  // 0: not known yet
  // How much unsent data a stream may hold; follows the delivery rate.
  void set_unsent_limit(std::size_t bytes) { context_.unsent_limit = bytes; }
  // The carriers that help the one in use (PathRoutes::helpers): the sum of their rates, bytes per second,
  // and the largest backlog from which one of them helps.
  struct Helpers {
    std::uint64_t rate = 0;
    std::size_t backlog = 0;
  };
  void set_helpers(std::uint64_t rate, std::size_t backlog) { helpers_ = {rate, backlog}; }
  const Helpers& helpers() const { return helpers_; }

  // A policy is in use if a stream that requests it wanted to send within this time.
  static constexpr Duration kAsked = std::chrono::seconds(10);
  bool asked_for(config::PathPolicy policy, TimePoint now) const {
    const auto& at = asked_at_[static_cast<std::size_t>(policy)];
    return at && now - *at < kAsked;
  }

  // ---- For the session.
  // A stream that had to wait for the next packet, or lost one, is served before the others of its class.
  enum class Turn : std::uint8_t { first, last };
  void wants_to_send(StreamEntry& stream, const StreamOutput& output, Turn turn);
  // The session is over.
  void stop() { stopped_ = true; }

 private:
  void write_streams(CarrierId carrier, std::size_t end, std::size_t chunk, FrameBatch& out);
  std::size_t write_chunk(SendStream& sending, StreamId id, std::size_t limit, CarrierId carrier,
                          FrameBatch& out);
  std::optional<std::size_t> place_for_helper(CarrierId carrier) const;
  bool fill_copies(std::size_t end, Buffer& out, PacketContent& content);
  void fill_lanes(CarrierId carrier, Streams which, std::size_t end, Buffer& out, PacketContent& content);
  void fill_as_helper(CarrierId carrier, std::size_t end, Buffer& out, PacketContent& content);
  bool fill_control(std::size_t end, Buffer& out, PacketContent& content);
  bool fill_chunk(SendStream& sending, StreamId id, CarrierId carrier, std::size_t end, Buffer& out,
                  PacketContent& content);
  static bool fill_range(const SendStream& sending, StreamId id, StreamRange& range, std::size_t end,
                         Buffer& out, PacketContent& content);

  StreamContext& context_;
  StreamTable& streams_;
  ControlStream& control_;
  DueFrames& due_;
  const SessionCarriers& carriers_;
  Scheduler scheduler_;
  SecondCopies copies_;
  std::array<std::optional<TimePoint>, config::kPathPolicies> asked_at_{};  // by explicit requests
  Buffer control_frames_;          // whole frames for packets
  std::size_t control_taken_ = 0;  // bytes of control_frames_ that were taken, from the front
  std::uint64_t line_rate_ = 0;
  Helpers helpers_;
  bool stopped_ = false;
};

}  // namespace longhaul::link
