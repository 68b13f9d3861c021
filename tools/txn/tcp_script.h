// SPDX-License-Identifier: Apache-2.0
// The transactions over TCP. Each connection begins with the pass, in place of the first bytes of its first
// file: what is sent keeps its size, and nothing waits for it.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"
#include "tools/measuring/pass.h"
#include "tools/txn/job.h"
#include "tools/txn/sockets.h"

namespace longhaul::txn {

class TcpClient {
 public:
  TcpClient(const Workload& workload, SocketAddress to, const measuring::Pass& pass,
            const std::atomic<bool>& stop);  // connects, except for EFT-SHORT
  void transact(std::uint32_t transaction);
  Counts counts() const { return {}; }

 private:
  void connect();
  void fill(std::uint32_t transaction, std::uint32_t offset, MutableBytes out);

  Workload workload_;
  SocketAddress to_;
  measuring::Pass pass_;
  bool shows_pass_ = false;  // in the next transaction
  const std::atomic<bool>& stop_;
  std::optional<Socket> socket_;
  Buffer buffer_;
};

void serve_tcp(const Workload& workload, Socket& listener, const measuring::Pass& pass, Tally& tally);

}  // namespace longhaul::txn
