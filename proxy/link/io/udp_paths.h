// SPDX-License-Identifier: Apache-2.0
// The UDP side of the link to one peer: its lines, and the choice between them and TCP: UDP is used while it
// is answered, abandoned when it is not, and probed again later.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <span>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/link/io/tcp_carrier.h"
#include "proxy/link/io/udp_lines.h"
#include "proxy/link/io/udp_path_log.h"
#include "proxy/link/status.h"
#include "proxy/link/udp/answer_watch.h"
#include "proxy/link/udp/carrier_contest.h"
#include "proxy/link/udp/path_sharing.h"
#include "proxy/link/udp/transport_choice.h"

namespace longhaul::link::udp {

class UdpPaths final : private UdpPathOwner {
 public:
  // `owner` outlives this object; it is informed of activity, and when the control connection must be closed
  // because only a new one brings new keys.
  UdpPaths(boost::asio::io_context& io, std::string peer, CarrierOwner& owner);
  ~UdpPaths();

  // The socket for dialling peers on the line of that name, created on first use; null if this host has none.
  // The name is empty where there are no [[peer.path]].
  UdpEndpoint* dialling_endpoint(const std::string& line, const net::LocalEnd& local, bool v6);

  // ---- New keys, from a new control connection. What carries now continues until the new ones are answered.
  void begin(Session& session);
  // Behind begin(): a path of these keys.
  void add(const std::string& line, UdpEndpoint& endpoint, UdpCarrierConfig config);
  // Of the only line.
  void begin(UdpEndpoint& endpoint, UdpCarrierConfig config, Session& session) {
    begin(session);
    add({}, endpoint, std::move(config));
  }
  // Before the session is destroyed.
  void end();

  struct Situation {
    config::Features features;                        // what both sides allow
    CarrierId tcp;                                    // the control connection, or kNoCarrier
    std::uint64_t rate_bits = 0;  // this side's configured rate, without paths; 0: measured
    std::uint64_t most_bits = 0;                      // measured or not; 0: no bound
    std::function<void(Bytes frames)> send_on_tcp{};  // whole frames, at once, though UDP is preferred
    std::span<const config::PeerPath> lines{};        // as configured here
    config::PathPolicy policy = config::PathPolicy::sum;
  };
  // Moves the session to the best path. Call it whenever anything may have changed.
  void choose(const Situation& situation, TimePoint now);

  // The whole link was silent and is heard again: paths that failed with it need not wait for their time.
  void probe_now(TimePoint now);
  void kick();

  // Measurements by the lines' names, from a carrier or an earlier daemon.
  std::vector<LineMemory> memories() const { return lines_.memories(); }
  void recall(const LineMemory& line) { lines_.named(line.name).recall(line.memory); }

  bool carrying() const { return sending_ != nullptr; }
  // Packets on the line of that name are acknowledged.
  bool works(const std::string& line) const { return lines_.works(line); }
  // The control connection has ended and no packet sent over UDP since was acknowledged: perhaps the peer has
  // ended with it.
  bool in_doubt() const;
  void fill(LinkStatus& status) const;

 private:
  // UdpPathOwner
  void after_path_activity() override { owner_.after_activity(); }
  void on_path_breach(UdpPath& path, const std::string& why) override;

  TransportVerdict transport_for(const Situation& situation, bool works) const;
  bool takes_part(std::size_t line) const;
  std::vector<bool> parts() const;  // of all lines
  void configure(const Situation& situation, TimePoint now);
  void forget_dropped();
  void use(config::PathPolicy policy, const PathShares& shares, std::span<const PathSharing::Path> paths,
           TimePoint now);
  void watch_lines();
  void watch_for_answer(bool is_wanted, TimePoint now);
  void compare_with_tcp(const Situation& situation, TimePoint now);
  void renew_keys(CarrierId control);
  void arm_timer();

  boost::asio::io_context& io_;
  CarrierOwner& owner_;
  Session* session_ = nullptr;
  UdpLines lines_;
  UdpPath* sending_ = nullptr;  // the session was put on it and is still there
  PathSharing sharing_;
  PathShares shares_;  // in force: places in lines_; none preferred: TCP carries

  std::optional<TimePoint> alone_since_;
  CarrierContest contest_;  // of the path that sends
  bool renewing_ = false;   // the control connection was ended for new keys
  std::uint64_t fallbacks_ = 0;
  AnswerWatch answer_;
  UdpPathLog log_;

  boost::asio::steady_timer timer_;
  std::optional<TimePoint> timer_at_;
  std::shared_ptr<UdpPaths*> self_;
};

}  // namespace longhaul::link::udp
