// SPDX-License-Identifier: Apache-2.0
// What a pair of agents does: the script, over which protocol, in which pieces, how often. Leaves doing it to
// the scripts, and what to compare to presets.h.
#pragma once
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace longhaul::txn {

enum class Script { eft_short, eft_long, filetransf_long };
enum class Protocol { tcp, udp };
enum class Calls { blocking, non_blocking };  // non-blocking ones wait in poll(2)
enum class Content { fresh, same };           // bytes of each transaction's own, or the same in all

struct Workload {
  Script script = Script::eft_short;
  Protocol protocol = Protocol::tcp;
  Calls calls = Calls::blocking;
  Content content = Content::fresh;
  std::uint32_t file_bytes = 100;      // that one transaction sends; the answer is one byte
  std::uint32_t send_buffer = 32'767;  // bytes given to one send call; over UDP a datagram, header included
  std::uint32_t window_bytes =
      0;                  // TCP: 0 is the kernel's own. UDP: sent before an acknowledgement is awaited
  std::uint32_t mtu = 0;  // no IP packet larger than that; 0: the path's, larger datagrams in fragments
  bool no_delay = false;  // TCP_NODELAY; the source's programs had none
  std::uint32_t transactions = 1000;
  std::chrono::milliseconds longest{0};           // no transaction begins later than that; 0: no bound
  std::chrono::milliseconds retransmit_after{0};  // UDP; 0: by measured round trips
  std::chrono::milliseconds patience{30'000};     // without a sign of the other agent
  std::uint64_t key = 0;  // of the pair: content is made from it, and datagrams without it are strangers'
};

// The script's own sizes, and for UDP the buffers of the source on 10 Mbit/s.
Workload standard(Script script, Protocol protocol);

std::string_view name_of(Script script);      // "EFT-SHORT"
std::string_view name_of(Protocol protocol);  // "tcp"
std::string_view name_of(Calls calls);
// Throw Trouble that names what there is.
Script script_of(std::string_view name);
Protocol protocol_of(std::string_view name);
Calls calls_of(std::string_view name);

// Throws Trouble with a sentence about the first thing that cannot be.
void check(const Workload& workload);

boost::json::object to_json(const Workload& workload);
Workload workload_of(const boost::json::object& message);  // checked; throws Trouble

// IP and UDP or TCP headers that count against the MTU.
enum class Family { ipv4, ipv6 };
std::uint32_t datagram_bytes(const Workload& workload, Family family);
std::uint32_t segment_bytes(const Workload& workload, Family family);  // 0: the kernel's own

}  // namespace longhaul::txn
