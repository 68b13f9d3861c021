// SPDX-License-Identifier: Apache-2.0
// The plain relay for flows outside the link: connects a client's socket and a server's, byte for byte, and
// preserves half-close and reset.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>

#include "codecs/bytes.h"
#include "proxy/flows/flow_table.h"
#include "proxy/flows/pipe_pool.h"

namespace longhaul::flows {

enum class RelayEnd : std::uint8_t {
  finished,      // both sides have ended, and everything was passed to the kernel
  client_reset,  // or its host no longer responds; the server was reset
  server_reset,  // the other way round
  cancelled,     // by the caller; both were reset
};

// A reset discards the kernel's unsent data, which without the proxy would have arrived before it, so this
// waits up to a second until that data is sent.
boost::asio::awaitable<void> close_with_reset(boost::asio::ip::tcp::socket& socket);

// One per event loop: holds what its flows share, the spare pipes and a buffer that is used without pipes.
class Relay {
 public:
  // If more than `most_pipes` flows move bytes, the others are copied, which costs three times the CPU, but
  // holds no memory for slow readers.
  explicit Relay(std::size_t most_pipes = 128) : pipes_(most_pipes) {}

  // Both sockets are connected; both are closed when it completes. Counts in `bytes`: lan_* towards the
  // client, wan_* towards the server. Cancelling resets both sides. `first`, which lives until then: bytes
  // already read from the client, and counted.
  boost::asio::awaitable<RelayEnd> run(boost::asio::ip::tcp::socket& client,
                                       boost::asio::ip::tcp::socket& server, FlowBytes& bytes,
                                       Bytes first = {});

 private:
  struct Direction;
  struct Join;
  boost::asio::awaitable<void> pump(Join& join, Direction& direction);

  static constexpr std::size_t kBufferBytes = 256 << 10;
  PipePool pipes_;
  std::unique_ptr<std::byte[]> buffer_;  // never holds bytes across a wait
};

}  // namespace longhaul::flows
