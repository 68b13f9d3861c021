// SPDX-License-Identifier: Apache-2.0
// What the pumps of a linked flow have in common, with a module and without: how much is read at a time, into
// which memory, and the running half of a module. Only for linked_flow*.cc.
#pragma once
#include <cerrno>

#include "proxy/flows/linked_flow.h"

namespace longhaul::flows {

// A read fills one record of the stream. Smaller ones are copied, so that they do not pin the whole.
inline constexpr std::size_t kReadBytes = 64 * 1024;
inline constexpr std::size_t kCopyBelow = 32 * 1024;
inline constexpr int kReadsPerTurn = 16;  // then others have their turn

// Memory for the next read, and the slice that owns it; kept for the next one until a read was large enough
// to keep it.
struct ReadSpace {
  Slice slice;
  std::byte* memory = nullptr;
};
inline ReadSpace& read_space() {
  thread_local ReadSpace space;
  if (!space.memory) space.slice = Slice::unfilled(link::Stream::kRecordRoom + kReadBytes, space.memory);
  return space;
}

inline bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

struct LinkedFlow::Hosted {
  Hosted(std::unique_ptr<modules::Module> half, link::Stream& stream, std::shared_ptr<modules::Memory> memory,
         const boost::asio::any_io_executor& executor, TellReason tell_reason)
      : host(std::move(half), stream, std::move(memory)), timer(executor), tell(std::move(tell_reason)) {}

  ModuleHost host;
  boost::asio::steady_timer timer;
  std::optional<link::TimePoint> timer_at;
  TellReason tell;
  Reason told = reasons::optimised;
  bool up_passes = false, down_passes = false;  // as the plain pumps know
  bool lan_lost = false;                        // this side's connection was reset
  bool aborting = false;                        // its last words are being delivered
};

}  // namespace longhaul::flows
