// SPDX-License-Identifier: Apache-2.0
// Reports flows to an IPFIX collector over UDP: each when it ends, long ones also periodically. Sends or
// drops, never waits; ipfix.h encodes the messages.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/export/counters.h"
#include "proxy/export/ipfix.h"
#include "proxy/flows/flow_table.h"
#include "proxy/log/line_limit.h"
#include "proxy/net/name_resolver.h"

namespace longhaul::exporting {

class FlowExporter {
 public:
  struct Settings {
    config::HostPort to;
    std::uint32_t enterprise = kExampleEnterprise;
    std::chrono::seconds active_timeout{60};
    std::uint32_t domain = 0;
  };
  // All references outlive this object.
  FlowExporter(boost::asio::io_context& io, Settings settings, const flows::FlowTable& table,
               net::NameResolver& resolver);
  FlowExporter(const FlowExporter&) = delete;
  FlowExporter& operator=(const FlowExporter&) = delete;

  void begin();
  // Call before its record is destroyed.
  void flow_ended(const flows::FlowRecord& record);
  // Reports the live flows, and sends as much as the socket accepts at once.
  void stop();
  const FlowExportCounters& counters() const { return counters_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Message {
    Buffer bytes;
    std::uint32_t records;
  };
  // The reported part of a live flow.
  struct Reported {
    flows::FlowBytes bytes;
    Clock::time_point until;
  };
  enum class Sent : std::uint8_t { yes, not_now, failed };

  boost::asio::awaitable<void> keep_address();
  bool connect(const std::vector<boost::asio::ip::address>& addresses);
  void wait();
  void report_long_flows();
  void report(const flows::FlowRecord& record, FlowEnd end, Clock::time_point now);
  void add(const FlowReport& report);
  void close_message();
  void drain();
  Sent send(Buffer& bytes, std::uint32_t data_records);
  void complain(const std::string& reason);

  boost::asio::io_context& io_;
  const Settings settings_;
  const flows::FlowTable& table_;
  net::NameResolver& resolver_;
  boost::asio::ip::udp::socket socket_;
  boost::asio::ip::udp::endpoint to_;
  boost::asio::steady_timer tick_, resend_;
  IpfixTemplates templates_;
  bool templates_due_ = false;
  IpfixData data_;
  std::deque<Message> queue_;
  bool waits_for_room_ = false;  // in the socket's buffer
  int ticks_ = 0;
  flows::FlowId last_seen_ = 0;  // of the walk over live flows
  std::unordered_map<flows::FlowId, Reported> reported_;
  std::uint32_t sequence_ = 0;
  FlowExportCounters counters_;
  log::LineLimit complaints_{1};
};

// A number for a site's observation domain, the same at each start.
std::uint32_t observation_domain(std::string_view site);

}  // namespace longhaul::exporting
