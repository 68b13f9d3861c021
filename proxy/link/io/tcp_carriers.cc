// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tcp_carriers.h"

#include <algorithm>

namespace longhaul::link {

void TcpCarriers::add(std::unique_ptr<TcpCarrier> carrier) {
  carriers_.push_back(std::move(carrier));
  ++attached_;
}

void TcpCarriers::count(const TcpCarrier& closed) {
  closed_bytes_sent_ += closed.bytes_sent();
  closed_bytes_received_ += closed.bytes_received();
}

bool TcpCarriers::forget(CarrierId id, Session* session) {
  const auto found = std::ranges::find(carriers_, id, [](const auto& carrier) { return carrier->id(); });
  if (found == carriers_.end()) return false;
  count(**found);
  carriers_.erase(found);
  if (session) session->detach(id, Clock::now());
  return true;
}

void TcpCarriers::forget_all(Session* session) {
  for (const auto& carrier : carriers_) {
    count(*carrier);
    if (session) session->detach(carrier->id(), Clock::now());
  }
  carriers_.clear();
}

void TcpCarriers::close_all(CloseCode code, const std::string& why, Session* session) {
  for (const auto& carrier : carriers_) carrier->close(code, why);
  forget_all(session);
}

void TcpCarriers::fill(LinkStatus& status) const {
  status.carriers_attached = attached_;
  status.bytes_sent = closed_bytes_sent_;
  status.bytes_received = closed_bytes_received_;
  for (const auto& carrier : carriers_) {
    status.carrier = "tcp";
    status.remote_address = carrier->remote();
    status.bytes_sent += carrier->bytes_sent();
    status.bytes_received += carrier->bytes_received();
    status.delivery_rate_bits = 8 * carrier->delivery_rate();
  }
}

}  // namespace longhaul::link
