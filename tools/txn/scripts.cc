// SPDX-License-Identifier: Apache-2.0
// Which script runs over which protocol, and what all of them time alike.
#include "tools/txn/scripts.h"

#include "tools/txn/tcp_script.h"
#include "tools/txn/udp_script.h"

namespace longhaul::txn {
namespace {

using Clock = std::chrono::steady_clock;

template <class Client>
void drive_with(Client client, const Workload& workload, Tally& tally) {
  const TimePoint first = Clock::now();
  const TimePoint last_begin = workload.longest.count() > 0 ? first + workload.longest : TimePoint::max();
  for (std::uint32_t transaction = 0; transaction < workload.transactions; ++transaction) {
    const TimePoint began = Clock::now();
    if (began > last_begin) return;
    client.transact(transaction);
    const TimePoint ended = Clock::now();
    tally.add(ended - began, ended - first, client.counts());
  }
}

}  // namespace

void drive(const Workload& workload, SocketAddress to, const measuring::Pass& pass, Tally& tally,
           const std::atomic<bool>& stop) {
  if (workload.protocol == Protocol::tcp)
    drive_with(TcpClient{workload, to, pass, stop}, workload, tally);
  else
    drive_with(UdpClient{workload, to, stop}, workload, tally);
}

Socket serving_socket(const Workload& workload, const boost::asio::ip::address& at, std::uint16_t port,
                      const std::atomic<bool>& stop) {
  Socket socket{workload, at.is_v4() ? AF_INET : AF_INET6, stop};
  socket.bind(at, port);
  if (workload.protocol == Protocol::tcp) socket.listen();
  return socket;
}

void serve(const Workload& workload, Socket& socket, const measuring::Pass& pass, Tally& tally,
           const std::atomic<bool>& stop) {
  if (workload.protocol == Protocol::tcp)
    serve_tcp(workload, socket, pass, tally);
  else
    serve_udp(workload, socket, tally, stop);
}

}  // namespace longhaul::txn
