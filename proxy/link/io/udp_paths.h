// SPDX-License-Identifier: Apache-2.0
// The UDP side of the link to one peer: a path for each set of keys, and the choice between UDP and TCP: UDP
// is used while it is answered, abandoned when it is not, and probed again later.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <vector>

#include "proxy/link/io/tcp_carrier.h"
#include "proxy/link/io/udp_path.h"
#include "proxy/link/status.h"
#include "proxy/link/udp/carrier_contest.h"

namespace longhaul::link::udp {

class UdpPaths final : private UdpPathOwner {
 public:
  // `owner` outlives this object; it is informed of activity, and when the control connection must be closed
  // because only a new one brings new keys.
  UdpPaths(boost::asio::io_context& io, std::string peer, CarrierOwner& owner);
  ~UdpPaths();

  // The socket for dialling peers, created on first use; null if this host has none.
  UdpEndpoint* dialling_endpoint(bool v6);

  // New keys, from a new control connection. The path that carries now continues until the new one answers.
  void begin(UdpEndpoint& endpoint, UdpCarrierConfig config, Session& session);
  // Before the session is destroyed.
  void end();

  struct Situation {
    config::Features features;                        // what both sides allow
    CarrierId tcp;                                    // the control connection, or kNoCarrier
    std::uint64_t rate_bits = 0;                      // this side's configured rate; 0: measured
    std::uint64_t most_bits = 0;                      // measured or not; 0: no bound
    std::function<void(Bytes frames)> send_on_tcp{};  // whole frames, at once, though UDP is preferred
  };
  // Moves the session to the best path. Call it whenever anything may have changed.
  void choose(const Situation& situation, TimePoint now);

  // The whole link was silent and is heard again: paths that failed with it need not wait for their time.
  void probe_now(TimePoint now);
  void kick();

  // Measurements of the path, from a carrier or an earlier daemon.
  std::optional<PathMemory> memory() const;
  void recall(const PathMemory& memory) { memory_ = memory; }

  bool carrying() const { return sending_ != nullptr; }
  // The control connection has ended and no packet sent over UDP since was acknowledged: perhaps the peer has
  // ended with it.
  bool in_doubt() const;
  void fill(LinkStatus& status) const;

 private:
  struct Path {
    std::unique_ptr<UdpPath> path;
    std::optional<TimePoint> ends;  // the peer has newer keys, and only data under way may still arrive
  };

  // UdpPathOwner
  void after_path_activity() override { owner_.after_activity(); }
  void on_path_breach(UdpPath& path, const std::string& why) override;

  UdpPath* newest() const { return paths_.empty() ? nullptr : paths_.back().path.get(); }
  UdpPath* best() const;
  void drop(std::size_t index);
  void send_on(UdpPath& path, TimePoint now);
  void note(const char* carrier, const char* reason);
  void watch_for_answer(bool is_wanted, TimePoint now);
  void watch_for_bursts();
  void compare_with_tcp(const Situation& situation, TimePoint now);
  void renew_keys(CarrierId control);
  void plan_retry(TimePoint now);
  void keep_standby(TimePoint now);
  void arm_timer();

  boost::asio::io_context& io_;
  std::string peer_;
  CarrierOwner& owner_;
  Session* session_ = nullptr;
  std::unique_ptr<UdpEndpoint> dial_v4_, dial_v6_;
  std::vector<Path> paths_;     // the last one is the newest
  UdpPath* sending_ = nullptr;  // the session was put on it and is still there
  std::optional<PathMemory> memory_;
  config::Features features_;
  std::uint64_t rate_bits_ = 0, most_bits_ = 0;

  const char* carrier_ = "";  // that was logged last
  std::optional<TimePoint> retry_at_, up_since_, alone_since_, keep_at_;
  Duration retry_after_, most_retry_;
  CarrierContest contest_;  // of the path that sends
  bool renewing_ = false;   // the control connection was ended for new keys
  std::uint64_t fallbacks_ = 0;
  std::optional<TimePoint> begun_;              // the session's first keys
  std::optional<TimePoint> answer_by_;          // of the peer, or it is said that there is none
  bool answered_ = false, unanswered_ = false;  // in this session
  bool drops_bursts_ = false;                   // the path, as was logged
  UdpCounters ended_;                           // of paths that are gone

  boost::asio::steady_timer timer_;
  std::optional<TimePoint> timer_at_;
  std::shared_ptr<UdpPaths*> self_;
};

}  // namespace longhaul::link::udp
