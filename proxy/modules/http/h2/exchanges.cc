// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/exchanges.h"

namespace longhaul::http::h2 {
namespace {

constexpr std::size_t kExchangeBytes = 1024;  // approximate, without its fields

}  // namespace

std::size_t memory_of(const Fields& fields) {
  std::size_t bytes = 0;
  for (const Field& field : fields.all()) bytes += sizeof field + field.name.size() + field.value.size();
  return bytes;
}

Exchange* Exchanges::of_client(StreamId stream) const {
  const auto found = exchanges_.find(stream);
  return found == exchanges_.end() ? nullptr : found->second.get();
}

Exchange* Exchanges::of_server(StreamId stream) const {
  const auto found = by_server_.find(stream);
  return found == by_server_.end() ? nullptr : found->second;
}

Exchange& Exchanges::open(StreamId stream, Fields block) {
  Exchange& exchange = *exchanges_.try_emplace(stream, std::make_unique<Exchange>()).first->second;
  exchange.client = stream;
  exchange.bytes = kExchangeBytes + 2 * memory_of(block);
  exchange.block = std::move(block);
  bytes_ += exchange.bytes;
  return exchange;
}

void Exchanges::join(Exchange& exchange, StreamId server) {
  exchange.server = server;
  by_server_[server] = &exchange;
}

void Exchanges::leave(Exchange& exchange) { by_server_.erase(std::exchange(exchange.server, 0)); }

void Exchanges::erase(const Exchange& exchange) {
  bytes_ -= exchange.bytes;
  std::erase_if(exchanges_, [&](const auto& each) { return each.second.get() == &exchange; });
}

std::size_t Exchanges::memory_bytes() const {
  std::uint64_t coming = 0;
  for (const auto& [stream, exchange] : exchanges_)
    if (exchange->incoming) coming += exchange->incoming->bytes();
  return bytes_ + static_cast<std::size_t>(coming);
}

}  // namespace longhaul::http::h2
