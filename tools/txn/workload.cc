// SPDX-License-Identifier: Apache-2.0
// Names, bounds and the JSON form of a workload.
#include "tools/txn/workload.h"

#include <algorithm>
#include <array>
#include <string>

#include "tools/measuring/messages.h"
#include "tools/measuring/pass.h"
#include "tools/measuring/trouble.h"
#include "tools/txn/datagram.h"

namespace longhaul::txn {
namespace {

using measuring::Trouble;

constexpr std::uint32_t kMostFile = 1u << 30;
constexpr std::uint32_t kMostBuffer = 16u << 20;
constexpr std::uint32_t kMostUdpBuffer = 65'487;  // a datagram's most over IPv6; IPv4 has room for 20 more
constexpr std::uint32_t kMostWindow = 1u << 30;
constexpr std::uint32_t kMostTcpWindow = 1u << 29;  // the kernel counts four times as much in an int
constexpr std::uint32_t kLeastTcpWindow =
    1'460;  // the kernel rounds up what is much smaller, and does not say so
constexpr std::uint32_t kMostTransactions = 10'000'000;  // each is kept, to be sorted
constexpr std::uint32_t kLeastMtu = 576;
constexpr std::int64_t kMostMs = 24 * 3600 * 1000;

constexpr std::array<std::string_view, 3> kScripts{"EFT-SHORT", "EFT-LONG", "FILETRANSF-LONG"};
constexpr std::array<std::string_view, 2> kProtocols{"tcp", "udp"};
constexpr std::array<std::string_view, 2> kCalls{"blocking", "non-blocking"};

template <std::size_t Count>
std::size_t place_of(const std::array<std::string_view, Count>& names, std::string_view name,
                     const char* what) {
  const auto same = [](char a, char b) { return std::toupper(a) == std::toupper(b); };
  std::string all;
  for (std::size_t i = 0; i < Count; ++i) {
    if (std::ranges::equal(names[i], name, same)) return i;
    all += (i ? i + 1 == Count ? " and " : ", " : "") + std::string(names[i]);
  }
  throw Trouble("there is no " + std::string(what) + " '" + std::string(name) + "'; known are " + all);
}

void bound(std::string_view what, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw Trouble(std::string(what) + " is " + std::to_string(value) + "; it must be between " +
                std::to_string(least) + " and " + std::to_string(most));
}

}  // namespace

Workload standard(Script script, Protocol protocol) {
  Workload workload;
  workload.script = script;
  workload.protocol = protocol;
  if (script == Script::filetransf_long) {
    workload.file_bytes = 1'460'000;
    workload.transactions = 100;
  }
  if (protocol == Protocol::udp) {
    workload.send_buffer = 8'863;
    workload.window_bytes = 17'726;
  }
  return workload;
}

std::string_view name_of(Script script) { return kScripts[static_cast<std::size_t>(script)]; }
std::string_view name_of(Protocol protocol) { return kProtocols[static_cast<std::size_t>(protocol)]; }
std::string_view name_of(Calls calls) { return kCalls[static_cast<std::size_t>(calls)]; }
Script script_of(std::string_view name) { return static_cast<Script>(place_of(kScripts, name, "script")); }
Protocol protocol_of(std::string_view name) {
  return static_cast<Protocol>(place_of(kProtocols, name, "protocol"));
}
Calls calls_of(std::string_view name) { return static_cast<Calls>(place_of(kCalls, name, "kind of calls")); }

void check(const Workload& workload) {
  // A connection's first file begins with the pass.
  const std::uint32_t least = workload.protocol == Protocol::tcp ? measuring::kPassBytes : 1;
  bound("the file size", workload.file_bytes, least, kMostFile);
  bound("the number of transactions", workload.transactions, 1, kMostTransactions);
  const bool is_udp = workload.protocol == Protocol::udp;
  if (is_udp || workload.window_bytes)
    bound("the window", workload.window_bytes, is_udp ? 1 : kLeastTcpWindow,
          is_udp ? kMostWindow : kMostTcpWindow);
  if (workload.mtu) bound("the MTU", workload.mtu, kLeastMtu, 65'535);
  bound("the time bound in milliseconds", workload.longest.count(), 0, kMostMs);
  bound("the value of --patience in milliseconds", workload.patience.count(), 100, kMostMs);
  bound("the retransmission time-out in milliseconds", workload.retransmit_after.count(), 0, kMostMs);
  if (workload.protocol == Protocol::tcp) {
    bound("the send buffer", workload.send_buffer, 1, kMostBuffer);
    return;
  }
  bound("the send buffer (a datagram, over UDP)", workload.send_buffer, kDatagramHeader + 1, kMostUdpBuffer);
  const auto smallest = datagram_bytes(workload, Family::ipv6);
  bound("the number of datagrams in a window", workload.window_bytes / smallest, 0, kMostDatagramsInWindow);
}

boost::json::object to_json(const Workload& workload) {
  boost::json::object json;
  json["script"] = name_of(workload.script);
  json["protocol"] = name_of(workload.protocol);
  json["calls"] = name_of(workload.calls);
  json["same_content"] = workload.content == Content::same;
  json["file_bytes"] = workload.file_bytes;
  json["send_buffer"] = workload.send_buffer;
  json["window_bytes"] = workload.window_bytes;
  json["mtu"] = workload.mtu;
  json["no_delay"] = workload.no_delay;
  json["transactions"] = workload.transactions;
  json["longest_ms"] = workload.longest.count();
  json["retransmit_after_ms"] = workload.retransmit_after.count();
  json["patience_ms"] = workload.patience.count();
  json["key"] = static_cast<std::int64_t>(workload.key);
  return json;
}

Workload workload_of(const boost::json::object& message) {
  const auto small = [&](std::string_view name) {
    return static_cast<std::uint32_t>(measuring::number(message, name, 0, UINT32_MAX));
  };
  const auto time = [&](std::string_view name) {
    return std::chrono::milliseconds{measuring::number(message, name, 0, kMostMs)};
  };
  Workload workload;
  workload.script = script_of(measuring::text(message, "script", 32));
  workload.protocol = protocol_of(measuring::text(message, "protocol", 32));
  workload.calls = calls_of(measuring::text(message, "calls", 32));
  workload.content = measuring::truth(message, "same_content") ? Content::same : Content::fresh;
  workload.file_bytes = small("file_bytes");
  workload.send_buffer = small("send_buffer");
  workload.window_bytes = small("window_bytes");
  workload.mtu = small("mtu");
  workload.no_delay = measuring::truth(message, "no_delay");
  workload.transactions = small("transactions");
  workload.longest = time("longest_ms");
  workload.retransmit_after = time("retransmit_after_ms");
  workload.patience = time("patience_ms");
  workload.key = static_cast<std::uint64_t>(measuring::number(message, "key", INT64_MIN, INT64_MAX));
  check(workload);
  return workload;
}

std::uint32_t datagram_bytes(const Workload& workload, Family family) {
  if (!workload.mtu) return workload.send_buffer;
  return std::min(workload.send_buffer, workload.mtu - (family == Family::ipv4 ? 28 : 48));
}

std::uint32_t segment_bytes(const Workload& workload, Family family) {
  return workload.mtu ? workload.mtu - (family == Family::ipv4 ? 40 : 60) : 0;
}

}  // namespace longhaul::txn
