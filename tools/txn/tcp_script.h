// SPDX-License-Identifier: Apache-2.0
// The transactions over TCP.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"
#include "tools/txn/job.h"
#include "tools/txn/sockets.h"

namespace longhaul::txn {

class TcpClient {
 public:
  TcpClient(const Workload& workload, SocketAddress to,
            const std::atomic<bool>& stop);  // connects, except for EFT-SHORT
  void transact(std::uint32_t transaction);
  Counts counts() const { return {}; }

 private:
  void connect();

  Workload workload_;
  SocketAddress to_;
  const std::atomic<bool>& stop_;
  std::optional<Socket> socket_;
  Buffer buffer_;
};

void serve_tcp(const Workload& workload, Socket& listener, Tally& tally);

}  // namespace longhaul::txn
