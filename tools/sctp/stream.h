// SPDX-License-Identifier: Apache-2.0
// A stream that is measured: the sender fills an association for some seconds, the receiver counts what
// arrives in them and says so. How the association works is in association.h, how a user asks for it in
// main.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tools/sctp/association.h"

namespace longhaul::sctp {

struct Received {
  std::uint64_t bytes = 0;              // of messages, within the seconds
  std::chrono::microseconds elapsed{};  // by the receiver's clock, from the sender's first word
  std::chrono::microseconds cpu{};      // of the receiver's process meanwhile, user and system
};

struct Sent {
  Received received;
  std::uint64_t bytes = 0;  // given to the stack until the end
  std::size_t message_bytes = 0;
  std::chrono::microseconds elapsed{};
  std::chrono::microseconds cpu{};
};

// Runs one stream. `message_bytes` 0: what fits into one packet. Throws std::runtime_error when the receiver
// does not answer within a minute after the end.
Sent send_stream(Association& association, std::chrono::milliseconds length, std::size_t message_bytes);

// Takes one stream and returns when its sender has gone.
Received receive_stream(Association& association);

}  // namespace longhaul::sctp
