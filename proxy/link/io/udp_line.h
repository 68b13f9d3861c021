// SPDX-License-Identifier: Apache-2.0
// One line to a peer: the paths for successive keys on it, its sockets, and when it is probed. udp_paths.h
// chooses between lines, and between UDP and TCP.
#pragma once
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/link/io/udp_path.h"
#include "proxy/link/status.h"
#include "proxy/link/udp/path_sharing.h"
#include "proxy/net/local_end.h"

namespace longhaul::link::udp {

class UdpLine {
 public:
  // `name`: that of its [[peer.path]]; empty: the only line, or the one to a peer without paths.
  explicit UdpLine(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  // The socket for dialling, created on first use. An error: this host has none for it.
  Result<UdpEndpoint*> dialling_endpoint(boost::asio::io_context& io, const net::LocalEnd& local, bool v6);

  // ---- Keys.
  // New ones. `owner` and `session` outlive the paths.
  void begin(boost::asio::io_context& io, UdpEndpoint& endpoint, UdpCarrierConfig config, Session& session,
             UdpPathOwner& owner, const UdpPath* sending);
  // There are newer keys, on this line or another: those it has wait for them, and then receive what is under
  // way.
  void outdate(TimePoint now);
  bool holds(const UdpPath* path) const;
  UdpPath* newest() const { return paths_.empty() ? nullptr : paths_.back().path.get(); }
  // The one that may send; null: none works.
  UdpPath* best() const;
  // The newest keys are in use: older ones end soon.
  void settle(TimePoint now);
  void drop(const UdpPath& path);
  void drop_all();

  // ---- Settings, of all its paths.
  // `lines`: as configured here, in which this one may be missing; then it is used when there is no other.
  // `settings` has the rate of a line that is missing there; the others have their own.
  void configure(std::span<const config::PeerPath> lines, UdpSettings settings, TimePoint now);
  std::uint32_t cost() const { return cost_; }
  // Its best path, for the choice between lines.
  PathSharing::Path as_choice() const;
  void set_rival(bool there_is, const UdpPath* sending);

  // All its paths: something is to be sent, perhaps.
  void kick();

  // ---- Time.
  enum class Use : std::uint8_t { standby, carries };
  // It carries, or no longer does.
  void use(Use use, TimePoint now);
  // It fell silent while it carried.
  void on_fallback(TimePoint now);
  // Ends old keys, probes what failed, and every `standby` what works and does not send.
  void step(const UdpPath* sending, Duration standby, TimePoint now);
  enum class Probe : std::uint8_t {
    failed,  // what failed need not wait for its time
    silent,  // nor what waits for an answer to rare probes: other lines may have stopped
  };
  void probe(Probe which, TimePoint now);
  std::optional<TimePoint> next_timeout(const UdpPath* sending) const;

  // Measurements, from a carrier or an earlier daemon.
  std::optional<PathMemory> memory() const;
  void recall(const PathMemory& memory) { memory_ = memory; }
  struct Figures {
    UdpStatus udp;  // counters of all keys since the start, and the state of the newest
    TimerLateness late;
  };
  Figures figures() const;

 private:
  struct Path {
    std::unique_ptr<UdpPath> path;
    std::optional<TimePoint> ends;  // the peer has newer keys, and only data under way may still arrive
  };
  struct Dialling {
    net::LocalEnd local;
    bool v6;
    std::unique_ptr<UdpEndpoint> endpoint;
  };

  void drop_at(std::size_t index);
  void plan_retry(TimePoint now);

  std::string name_;
  std::vector<Dialling> dialling_;  // outlive the paths
  std::vector<Path> paths_;         // the last one is the newest
  std::optional<PathMemory> memory_;
  UdpSettings settings_;
  std::uint32_t cost_ = kLastResort;
  std::size_t order_ = 0;  // in the configuration
  std::optional<TimePoint> retry_at_, up_since_, keep_at_;
  Duration retry_after_ = kFirstRetry, most_retry_ = kLaterRetry;
  UdpCounters ended_;  // of paths that are gone

  static constexpr std::uint32_t kLastResort = std::numeric_limits<std::uint32_t>::max();
  // A path that failed is tried again soon, then less and less often: a probe costs little, and a change to a
  // path that fails again costs a second without data. Soon again after it has carried for a minute.
  static constexpr Duration kFirstRetry = std::chrono::seconds(1), kLaterRetry = std::chrono::seconds(15),
                            kLatestRetry = std::chrono::seconds(60);
};

}  // namespace longhaul::link::udp
