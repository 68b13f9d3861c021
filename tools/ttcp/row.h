// SPDX-License-Identifier: Apache-2.0
// What one test gave, and the columns that are made of it. Leaves files to table.h.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ttcp/plan.h"

namespace longhaul::ttcp {

struct Fragments {
  std::uint64_t created = 0;
  std::uint64_t received = 0;
  std::uint64_t failed = 0;  // packets that could not be put together
};

struct Row {
  Test test;
  std::uint64_t packets_sent = 0;  // TCP: writes
  std::uint64_t packets_received = 0;
  std::uint64_t bytes_received = 0;  // of data, without padding
  double seconds = 0;                // at the receiver; with setup_seconds where the kind asks for them
  double setup_seconds = 0;          // of a TCP connection
  double send_seconds = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t out_of_order = 0;
  std::uint64_t socket_drops = 0;  // lost in the receiving host, for want of buffer, not on the path
  std::uint32_t path_mtu = 0;      // as the sender's kernel knows it
  bool is_ipv6 = false;
  std::uint64_t fragments_sent = 0;  // counted by the kernels, so other programs' are included
  std::uint64_t fragments_received = 0;
  std::uint64_t fragments_failed = 0;
  std::string ended_by;

  std::uint64_t bytes_sent() const { return packets_sent * test.packet_bytes; }
};

struct Column {
  enum class Group { source, sending, fragments, more };
  std::string_view name;     // in CSV and JSON
  std::string_view heading;  // in tables
  int decimals;
  Group group;
  double (*value)(const Row&);
};
// In the source's order, protocol, kind and trial left out.
std::span<const Column> columns();

// One line of a table: a test's, or the mean of all trials of a kind and size.
struct Line {
  std::string protocol;
  std::string trial;           // a number, or "mean"
  std::vector<double> values;  // in the order of columns()
  std::string ended_by;
};
Line line_of(const Row& row);
std::vector<Line> means_of(std::span<const Row> rows);

}  // namespace longhaul::ttcp
