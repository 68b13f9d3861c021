// SPDX-License-Identifier: Apache-2.0
// The two ends of a pair at work: one drives the transactions and times them, the other serves. They block
// the thread they are called on (see job.h) and end by Trouble, by Stopped, or, driving, when all is done.
#pragma once
#include "tools/measuring/pass.h"
#include "tools/txn/job.h"
#include "tools/txn/sockets.h"
#include "tools/txn/workload.h"

namespace longhaul::txn {

// `pass` is what the serving side has announced. UDP needs none: its datagrams carry the pair's key.
void drive(const Workload& workload, SocketAddress to, const measuring::Pass& pass, Tally& tally,
           const std::atomic<bool>& stop);

// Bound, and over TCP listening: clients may start once they know the port.
Socket serving_socket(const Workload& workload, const boost::asio::ip::address& at, std::uint16_t port,
                      const std::atomic<bool>& stop);
// Until it is stopped; over TCP only for connections with the pass.
void serve(const Workload& workload, Socket& socket, const measuring::Pass& pass, Tally& tally,
           const std::atomic<bool>& stop);

}  // namespace longhaul::txn
