// SPDX-License-Identifier: Apache-2.0
// Everything that the control API needs from the running daemon, which implements it; the tests have a
// working fake.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/store_counters.h"
#include "proxy/config/features.h"
#include "proxy/control/history.h"
#include "proxy/control/recent_rates.h"
#include "proxy/export/counters.h"
#include "proxy/flows/flow_table.h"
#include "proxy/flows/recent_talkers.h"
#include "proxy/flows/spares.h"
#include "proxy/flows/tuple.h"
#include "proxy/intercept/door_keeper.h"
#include "proxy/link/io/refusal.h"
#include "proxy/link/status.h"
#include "proxy/log/log.h"
#include "proxy/modules/modules.h"
#include "proxy/process/confinement.h"

namespace longhaul::control {

enum class InterceptState : std::uint8_t { not_configured, up, down };
enum class InterceptAction : std::uint8_t { up, down, fail_closed_install, fail_closed_remove };
using FailClosed = intercept::DoorKeeper::State;

// A share of [limits] memory (proxy/memory_plan.h), and how much of it is used.
struct MemoryPart {
  std::string_view name;
  std::uint64_t bytes = 0, limit_bytes = 0;
};

// A snapshot of the whole daemon. Numbers are current values, limits are those of the configuration.
struct Status {
  std::string site;
  std::string version;
  process::Confinement confinement;  // the privileges of this process on its host
  std::chrono::seconds uptime{0};
  std::optional<std::string> control_tls;  // [control] tls_listen
  std::uint64_t flows_limit = 0;
  std::uint64_t handshakes = 0;  // TLS handshakes in progress
  std::uint64_t handshakes_limit = 0;
  link::RefusalCounts strangers_refused{};  // connections to the link's port, by reason
  std::uint64_t memory_bytes = 0;           // of all parts
  std::uint64_t memory_limit_bytes = 0;
  std::vector<MemoryPart> memory_parts;
  std::uint64_t module_bytes = 0;      // part of memory_bytes held by application modules
  bool memory_short = false;           // no new flow is accepted on the links
  bool module_memory_short = false;    // no new flow gets a module
  std::uint64_t ahead_bytes = 0;       // data that modules hold before clients request it
  std::uint64_t dictionary_bytes = 0;  // dictionaries of all links, and the one on disk
  std::uint64_t dictionary_limit_bytes = 0;
  InterceptState intercept = InterceptState::not_configured;
  // New connections that bypassed transparent mode because of a limit; by the limit's name.
  std::vector<std::pair<std::string_view, std::uint64_t>> bypassed;
  std::string intercept_error;  // why the rules could not be installed; empty: no error
  FailClosed fail_closed = FailClosed::not_configured;
  std::string fail_closed_error;        // why its rules are missing
  std::uint64_t unknown_datagrams =
      0;  // received on the link's UDP port for no carrier, and dropped without a response
  modules::List modules;                // lives as long as the daemon
  std::uint64_t connections_ahead = 0;  // to servers, made before a client needs them
  flows::Spares::Counters connections_ahead_so_far{};
  std::optional<cache::StoreCounters> disk;  // of the disk dictionary; nullopt if there is none
  std::optional<cache::ObjectCounters> objects;  // of the modules' store on disk; nullopt if there is none
  std::optional<log::SyslogCounters> syslog;  // nullopt if [log] syslog is not set
  bool logs_keys = false;  // [link] key_log
  std::optional<exporting::FlowExportCounters> flow_export;  // nullopt if [export] ipfix is not set
  std::optional<exporting::MetricExportCounters> metric_export;  // nullopt if [export] otlp is not set
  std::vector<link::LinkStatus> links;       // one for each configured peer, in the order of the file
  RecentRates rates;
};

// The treatment of a flow that would begin now.
enum class Path : std::uint8_t {
  over_link,
  bypasses_link,
  refused,
  not_intercepted,  // it would not reach this daemon
  for_peer,         // it would arrive over the link, and this daemon would connect to its server
};
struct Forecast {
  Path path = Path::bypasses_link;
  flows::Reason reason{};
  std::string sentence{}, remedy{};  // if they differ from the reason's texts
  std::string peer{};               // empty if the destination belongs to no peer
  config::Features features{};      // after the rules
  std::optional<std::size_t> rule{};  // the [[rule]] that matches, counted from 1 as in the file
};

enum class ClearWhat : std::uint8_t { all, objects };  // objects: only the responses that modules have stored
struct Cleared {
  std::uint64_t memory_bytes = 0;  // of history rings
  std::uint64_t disk_bytes = 0;    // of segments
  std::uint64_t object_bytes = 0;  // of responses that modules have stored
  struct Peer {
    std::string name;
    std::optional<std::uint64_t>
        disk_bytes;  // bytes that it dropped; nullopt if its link is not up, or it did not report
  };
  std::vector<Peer> peers;
  cache::ClearedKey disk_key = cache::ClearedKey::none;
  cache::ClearedKey object_key = cache::ClearedKey::none;
};

// Why the daemon refused a request: one sentence for the operator.
struct Refusal {
  std::string sentence;
};

// Called on the loop that owns the flows; no call may block it for longer than a few milliseconds.
class Controlled {
 public:
  virtual ~Controlled() = default;

  virtual Status status() const = 0;
  virtual const flows::FlowTable& flows() const = 0;
  virtual const flows::RecentTalkers& recent_talkers() const = 0;
  virtual const config::Features& features() const = 0;             // in force
  virtual const config::Features& configured_features() const = 0;  // from the file: in force after a restart
  virtual const History& history() const = 0;
  virtual Forecast forecast(const flows::Tuple& tuple) = 0;
  // A plausible address of a client of this server, here or at the peer that has clients for it; nullopt if
  // unknown.
  virtual std::optional<boost::asio::ip::address> likely_client(const flows::Destination& server) const = 0;
  virtual std::string intercept_rules() const = 0;  // as `intercept print` shows them, installed or not

  // The kernel's rules that implement fail = closed, with counters; empty if there are none.
  virtual std::string fail_closed_rules() = 0;

  // Takes effect at once for new flows; notifies the peers.
  virtual void change_features(const config::Features& features) = 0;
  // Clears this daemon's cache at once; then waits for the peers' reports, up to a limit.
  virtual boost::asio::awaitable<Cleared> clear_cache(ClearWhat what) = 0;
  virtual boost::system::result<void, Refusal> intercept(InterceptAction action) = 0;
  // Reads the configuration file again and applies it, as a whole or not at all; returns the changes.
  virtual boost::system::result<std::vector<std::string>, Refusal> reload() = 0;
};

}  // namespace longhaul::control
