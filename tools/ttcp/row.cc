// SPDX-License-Identifier: Apache-2.0
// The columns one by one, and their means.
#include "tools/ttcp/row.h"

#include <algorithm>
#include <array>

namespace longhaul::ttcp {
namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

double lost(std::uint64_t sent, std::uint64_t received) {
  return sent > received ? number(sent - received) : 0;
}

// Fragments that the path MTU makes of one packet: each but the last carries a multiple of 8 bytes
// (RFC 791, RFC 8200 section 4.5).
double fragments_of(const Row& row) {
  const std::uint32_t header = row.is_ipv6 ? 40 : 20;
  const std::uint32_t header_of_fragment = row.is_ipv6 ? 48 : 20;
  const std::uint32_t packet = kUdpHeaderBytes + row.test.payload_bytes();
  if (!is_udp(row.test.kind) || row.path_mtu < 68 || packet + header <= row.path_mtu) return 1;
  const std::uint32_t room = (row.path_mtu - header_of_fragment) / 8 * 8;
  return (packet + room - 1) / room;
}

using Group = Column::Group;
constexpr std::array kColumns{
    Column{"header_bytes", "header", 0, Group::source,
           [](const Row& row) { return double(row.test.header_bytes()); }},
    Column{"packet_bytes", "packet", 0, Group::source,
           [](const Row& row) { return double(row.test.packet_bytes); }},
    Column{"packets_sent", "packets sent", 0, Group::source,
           [](const Row& row) { return number(row.packets_sent); }},
    Column{"bytes_sent", "bytes sent", 0, Group::source,
           [](const Row& row) { return number(row.bytes_sent()); }},
    Column{"bytes_received", "bytes received", 0, Group::source,
           [](const Row& row) { return number(row.bytes_received); }},
    Column{"seconds", "seconds", 6, Group::source, [](const Row& row) { return row.seconds; }},
    Column{"kbytes_per_second", "KB/s", 2, Group::source,
           [](const Row& row) { return per_second(number(row.bytes_received), row.seconds) / 1024; }},
    Column{"mbit_per_second", "Mbit/s", 3, Group::source,
           [](const Row& row) { return per_second(number(row.bytes_received), row.seconds) * 8 / 1e6; }},
    Column{"bytes_lost", "bytes lost", 0, Group::source,
           [](const Row& row) { return lost(row.bytes_sent(), row.bytes_received); }},
    Column{"packets_lost", "packets lost", 0, Group::source,
           [](const Row& row) { return lost(row.packets_sent, row.packets_received); }},
    Column{"percent_received", "% received", 3, Group::source,
           [](const Row& row) {
             return 100 * per_second(number(row.bytes_received), number(row.bytes_sent()));
           }},
    Column{"sending_seconds", "sending s", 6, Group::sending,
           [](const Row& row) { return row.send_seconds; }},
    Column{"sending_kbytes_per_second", "sending KB/s", 2, Group::sending,
           [](const Row& row) { return per_second(number(row.bytes_sent()), row.send_seconds) / 1024; }},
    Column{"sending_mbit_per_second", "sending Mbit/s", 3, Group::sending,
           [](const Row& row) { return per_second(number(row.bytes_sent()), row.send_seconds) * 8 / 1e6; }},
    Column{"path_mtu", "path MTU", 0, Group::fragments, [](const Row& row) { return double(row.path_mtu); }},
    Column{"fragments_per_packet", "fragments/packet", 0, Group::fragments, fragments_of},
    Column{"fragments_sent", "fragments sent", 0, Group::fragments,
           [](const Row& row) { return number(row.fragments_sent); }},
    Column{"fragments_received", "fragments received", 0, Group::fragments,
           [](const Row& row) { return number(row.fragments_received); }},
    Column{"fragments_failed", "not reassembled", 0, Group::fragments,
           [](const Row& row) { return number(row.fragments_failed); }},
    Column{"setup_seconds", "set-up s", 6, Group::more, [](const Row& row) { return row.setup_seconds; }},
    Column{"duplicates", "duplicates", 0, Group::more, [](const Row& row) { return number(row.duplicates); }},
    Column{"out_of_order", "out of order", 0, Group::more,
           [](const Row& row) { return number(row.out_of_order); }},
    Column{"socket_drops", "dropped by the receiver", 0, Group::more,
           [](const Row& row) { return number(row.socket_drops); }},
};

bool is_same(const Test& a, const Test& b) { return a.kind == b.kind && a.packet_bytes == b.packet_bytes; }

}  // namespace

std::span<const Column> columns() { return kColumns; }

Line line_of(const Row& row) {
  Line line{name_of(row.test.kind, row.test.padding_bytes), std::to_string(row.test.trial), {}, row.ended_by};
  for (const Column& column : kColumns) line.values.push_back(column.value(row));
  return line;
}

std::vector<Line> means_of(std::span<const Row> rows) {
  std::vector<Line> means;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const Test& test = rows[at].test;
    const auto is_like = [&](const Row& row) { return is_same(row.test, test); };
    if (std::ranges::any_of(rows.first(at), is_like)) continue;  // its mean stands already
    Line mean = line_of(rows[at]);
    std::ranges::fill(mean.values, 0.);
    mean.trial = "mean";
    mean.ended_by.clear();
    const auto count = static_cast<double>(std::ranges::count_if(rows, is_like));
    for (const Row& row : rows)
      if (is_like(row))
        for (std::size_t i = 0; i < kColumns.size(); ++i) mean.values[i] += kColumns[i].value(row) / count;
    means.push_back(std::move(mean));
  }
  return means;
}

}  // namespace longhaul::ttcp
