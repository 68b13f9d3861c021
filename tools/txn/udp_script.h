// SPDX-License-Identifier: Apache-2.0
// The transactions over UDP: sockets and clock around exchange.h.
#pragma once
#include <optional>

#include "tools/txn/exchange.h"
#include "tools/txn/job.h"
#include "tools/txn/sockets.h"

namespace longhaul::txn {

class UdpClient {
 public:
  UdpClient(const Workload& workload, SocketAddress to, const std::atomic<bool>& stop);
  void transact(std::uint32_t transaction);
  Counts counts() const { return requester_->counts(); }

 private:
  void transmit(TimePoint now);

  Workload workload_;
  SocketAddress to_;
  const std::atomic<bool>& stop_;
  std::optional<Socket> socket_;
  std::unique_ptr<Requester> requester_;
  Buffer out_;
  Buffer in_;
};

void serve_udp(const Workload& workload, Socket& socket, Tally& tally, const std::atomic<bool>& stop);

}  // namespace longhaul::txn
