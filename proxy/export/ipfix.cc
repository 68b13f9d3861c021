// SPDX-License-Identifier: Apache-2.0
// Section numbers without a document refer to RFC 7011; element numbers are those of IANA's registry for RFC
// 7012.
#include "proxy/export/ipfix.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace longhaul::exporting {
namespace {

using boost::asio::ip::address;

constexpr std::size_t kHeaderBytes = 16;
constexpr std::uint16_t kVersion = 10;
constexpr std::uint16_t kTemplateSet = 2, kOptionsTemplateSet = 3;  // section 3.3.2
constexpr std::uint16_t kIpv4 = 256, kIpv6 = 257, kElementTypes = 258;
constexpr std::uint16_t kVariable = 65'535;        // section 7
constexpr std::uint16_t kEnterpriseBit = 0x8000;   // section 3.2
constexpr std::size_t kMostText = 254;             // the length fits one byte

struct Element {
  std::uint16_t id;
  std::uint16_t size;
};

// The first two elements differ between the templates.
constexpr Element kSourceIpv4{8, 4}, kDestinationIpv4{12, 4}, kSourceIpv6{27, 16}, kDestinationIpv6{28, 16};
constexpr std::array<Element, 10> kCommon{{{148, 8},    // flowId
                                           {7, 2},      // sourceTransportPort
                                           {11, 2},     // destinationTransportPort
                                           {4, 1},      // protocolIdentifier
                                           {61, 1},     // flowDirection
                                           {136, 1},    // flowEndReason
                                           {152, 8},    // flowStartMilliseconds
                                           {153, 8},    // flowEndMilliseconds
                                           {1, 8},      // octetDeltaCount
                                           {23, 8}}};   // postOctetDeltaCount
constexpr std::uint8_t kTcp = 6;

// RFC 5610, sections 3.1 and 3.3.
enum class Type : std::uint8_t { unsigned64 = 4, text = 13 };
enum class Meaning : std::uint8_t { standard = 0, delta_counter = 3 };

struct OwnElement {
  std::uint16_t id;
  Type type;
  Meaning meaning;
  std::string_view name, description;
};
constexpr std::array<OwnElement, 5> kOwn{
    {{1, Type::unsigned64, Meaning::delta_counter, "wanOctetDeltaCount",
      "Bytes of the flow on the WAN since the previous report, before encryption"},
     {2, Type::text, Meaning::standard, "flowReason", "Why the flow uses the link or bypasses it: a reason code"},
     {3, Type::text, Meaning::standard, "peerName", "The peer whose link carries the flow; empty: none"},
     {4, Type::text, Meaning::standard, "serverName", "The destination, if the client gave a name"},
     {5, Type::text, Meaning::standard, "moduleName", "The application module of the flow; empty: none"}}};

void put32(ByteWriter& out, std::uint32_t value) {
  out.fixed16(static_cast<std::uint16_t>(value >> 16));
  out.fixed16(static_cast<std::uint16_t>(value));
}

void put_text(ByteWriter& out, std::string_view text) {
  text = text.substr(0, kMostText);
  out.u8(static_cast<std::uint8_t>(text.size()));
  out.bytes(as_bytes(text));
}

void put_milliseconds(ByteWriter& out, std::chrono::system_clock::time_point time) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
  out.fixed64(static_cast<std::uint64_t>(std::max<decltype(since)>(since, 0)));
}

void patch16(Buffer& message, std::size_t at, std::size_t value) {
  assert(value <= 0xffff);
  message[at] = static_cast<std::byte>(value >> 8);
  message[at + 1] = static_cast<std::byte>(value & 0xff);
}

void put_element(ByteWriter& out, Element element) {
  out.fixed16(element.id);
  out.fixed16(element.size);
}

void put_own_element(ByteWriter& out, const OwnElement& own, std::uint32_t enterprise) {
  put_element(out, {static_cast<std::uint16_t>(own.id | kEnterpriseBit), own.type == Type::text ? kVariable : std::uint16_t{8}});
  put32(out, enterprise);
}

void put_template(ByteWriter& out, std::uint16_t id, Element source, Element destination, std::uint32_t enterprise) {
  out.fixed16(id);
  out.fixed16(kCommon.size() + 2 + kOwn.size());
  put_element(out, source);
  put_element(out, destination);
  for (const Element element : kCommon) put_element(out, element);
  for (const OwnElement& own : kOwn) put_own_element(out, own, enterprise);
}

// RFC 5610, section 3.9; the first two elements are the scope.
void put_type_template(ByteWriter& out) {
  constexpr std::array<Element, 6> kElements{{{346, 4},              // privateEnterpriseNumber
                                              {303, 2},              // informationElementId
                                              {339, 1},              // informationElementDataType
                                              {344, 1},              // informationElementSemantics
                                              {341, kVariable},      // informationElementName
                                              {340, kVariable}}};    // informationElementDescription
  out.fixed16(kElementTypes);
  out.fixed16(kElements.size());
  out.fixed16(2);
  for (const Element element : kElements) put_element(out, element);
}

void put_type(ByteWriter& out, const OwnElement& own, std::uint32_t enterprise) {
  put32(out, enterprise);
  out.fixed16(own.id);
  out.u8(static_cast<std::uint8_t>(own.type));
  out.u8(static_cast<std::uint8_t>(own.meaning));
  put_text(out, own.name);
  put_text(out, own.description);
}

template <class Write>
void put_set(Buffer& message, std::uint16_t id, Write write) {
  const std::size_t at = message.size();
  ByteWriter out(message);
  out.fixed16(id);
  out.fixed16(0);
  write(out);
  patch16(message, at + 2, message.size() - at);
}

address plain(const address& from) {
  return from.is_v6() && from.to_v6().is_v4_mapped() ? address(make_address_v4(boost::asio::ip::v4_mapped, from.to_v6())) : from;
}

void put_address(ByteWriter& out, const address& from, bool as_ipv6) {
  if (!as_ipv6) return put32(out, from.to_v4().to_uint());
  const auto bytes = (from.is_v6() ? from.to_v6() : make_address_v6(boost::asio::ip::v4_mapped, from.to_v4())).to_bytes();
  out.bytes(std::as_bytes(std::span(bytes)));
}

}  // namespace

IpfixTemplates ipfix_templates(std::uint32_t enterprise) {
  Buffer message(kHeaderBytes);
  put_set(message, kTemplateSet, [&](ByteWriter& out) {
    put_template(out, kIpv4, kSourceIpv4, kDestinationIpv4, enterprise);
    put_template(out, kIpv6, kSourceIpv6, kDestinationIpv6, enterprise);
  });
  put_set(message, kOptionsTemplateSet, [&](ByteWriter& out) { put_type_template(out); });
  put_set(message, kElementTypes, [&](ByteWriter& out) {
    for (const OwnElement& own : kOwn) put_type(out, own, enterprise);
  });
  assert(message.size() <= kMostIpfixBytes);
  return {std::move(message), kOwn.size()};
}

bool IpfixData::add(const FlowReport& report) {
  if (message_.empty()) message_.resize(kHeaderBytes);
  const std::size_t before = message_.size();
  const std::size_t set_before = set_at_;
  const address source = plain(report.source.address()), destination = plain(report.destination.address());
  const bool is_ipv6 = source.is_v6() || destination.is_v6();
  const std::uint16_t id = is_ipv6 ? kIpv6 : kIpv4;
  ByteWriter out(message_);
  if (set_at_ == 0 || set_id_ != id) {
    close_set();
    set_at_ = message_.size();
    out.fixed16(id);
    out.fixed16(0);
  }
  put_address(out, source, is_ipv6);
  put_address(out, destination, is_ipv6);
  out.fixed64(report.flow);
  out.fixed16(report.source.port());
  out.fixed16(report.destination.port());
  out.u8(kTcp);
  out.u8(static_cast<std::uint8_t>(report.direction));
  out.u8(static_cast<std::uint8_t>(report.end));
  put_milliseconds(out, report.from);
  put_milliseconds(out, report.until);
  out.fixed64(report.lan_bytes);
  out.fixed64(report.wan_bytes);
  out.fixed64(report.wan_bytes);
  put_text(out, report.reason);
  put_text(out, report.peer);
  put_text(out, report.server_name);
  put_text(out, report.module);
  if (message_.size() > kMostIpfixBytes) {
    assert(records_ > 0 && "every report fits an empty message");
    message_.resize(before);
    set_at_ = set_before;
    return false;
  }
  set_id_ = id;
  ++records_;
  return true;
}

void IpfixData::close_set() {
  if (set_at_ != 0) patch16(message_, set_at_ + 2, message_.size() - set_at_);
  set_at_ = 0;
}

Buffer IpfixData::take() {
  close_set();
  records_ = 0;
  return std::exchange(message_, {});
}

void write_ipfix_header(Buffer& message, const IpfixHeader& header) {
  Buffer written;
  ByteWriter out(written);
  out.fixed16(kVersion);
  out.fixed16(static_cast<std::uint16_t>(message.size()));
  put32(out, header.export_time);
  put32(out, header.sequence);
  put32(out, header.domain);
  std::ranges::copy(written, message.begin());
}

}  // namespace longhaul::exporting
