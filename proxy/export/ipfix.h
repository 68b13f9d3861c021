// SPDX-License-Identifier: Apache-2.0
// Encodes flows as IPFIX messages (RFC 7011): templates, the types of our own elements (RFC 5610), and data.
// Pure; flow_exporter.h decides what to report and when, and sends the messages.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "codecs/byte_writer.h"

namespace longhaul::exporting {

// The header of every message. `sequence`: data records sent before it, modulo 2^32.
struct IpfixHeader {
  std::uint32_t export_time = 0;  // Unix time in seconds
  std::uint32_t sequence = 0;
  std::uint32_t domain = 0;  // observation domain: identifies the exporter on this host
};

// Registry "flowEndReason".
enum class FlowEnd : std::uint8_t { active_timeout = 2, end_detected = 3, forced = 4 };
// Registry "flowDirection", seen from this site's LAN.
enum class FlowDirection : std::uint8_t { ingress = 0, egress = 1 };

// The bytes of one direction of a flow since its last report. Borrows its texts.
struct FlowReport {
  std::uint64_t flow = 0;
  boost::asio::ip::tcp::endpoint source, destination;
  FlowDirection direction = FlowDirection::ingress;
  FlowEnd end = FlowEnd::end_detected;
  std::chrono::system_clock::time_point from, until;
  std::uint64_t lan_bytes = 0, wan_bytes = 0;
  std::string_view reason, peer, server_name, module;
};

// 1280 (the minimum MTU of IPv6) - 40 (IPv6) - 8 (UDP): passes everywhere without fragmentation.
inline constexpr std::size_t kMostIpfixBytes = 1232;
// The number that RFC 5612 reserves for examples: this project has no number of its own.
inline constexpr std::uint32_t kExampleEnterprise = 32'473;

// The templates that a collector needs before it can read data: over UDP they are repeated.
struct IpfixTemplates {
  Buffer message;
  std::uint32_t data_records = 0;  // for the sequence
};
IpfixTemplates ipfix_templates(std::uint32_t enterprise);

// One message under construction.
class IpfixData {
 public:
  // Returns false, and adds nothing, if the report does not fit. It always fits an empty message.
  bool add(const FlowReport& report);
  std::uint32_t records() const { return records_; }
  // Returns the message and empties this object. The header must still be written.
  Buffer take();

 private:
  void close_set();

  Buffer message_;
  std::size_t set_at_ = 0;  // position of the open set's header; 0 if no set is open
  std::uint16_t set_id_ = 0;
  std::uint32_t records_ = 0;
};

// Writes the first 16 bytes of a message. To be called when it is sent, so that dropped messages do not
// count.
void write_ipfix_header(Buffer& message, const IpfixHeader& header);

}  // namespace longhaul::exporting
