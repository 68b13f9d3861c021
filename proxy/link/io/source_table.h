// SPDX-License-Identifier: Apache-2.0
// State per source of connections, for a limited number of sources. A source is one IPv4 address, or an IPv6
// /64, in which one host can have any number of addresses.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <list>
#include <utility>

#include "codecs/keyed_hash.h"
#include "proxy/config/network.h"

namespace longhaul::link {

using SourceKey = std::uint64_t;
// IPv4 addresses use the keys of an unused IPv6 network (0:ffff::/32).
inline SourceKey source_key(const boost::asio::ip::address& of) {
  const auto address = config::unmapped(of);
  if (address.is_v4()) return 0xffffull << 32 | address.to_v4().to_uint();
  SourceKey key = 0;
  const auto bytes = address.to_v6().to_bytes();
  for (std::size_t i = 0; i < 8; ++i) key = key << 8 | bytes[i];
  return key;
}

template <class Value>
class SourceTable {
 public:
  explicit SourceTable(std::size_t most) : most_(most) {}

  // A missing source is created; if the table is full, it replaces the least recently used one.
  Value& operator[](SourceKey key) {
    if (auto known = by_key_.find(key); known != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      return known->second->second;
    }
    if (entries_.size() >= most_) {
      by_key_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, Value{});
    by_key_[key] = entries_.begin();
    return entries_.front().second;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  std::size_t most_;
  std::list<std::pair<SourceKey, Value>> entries_;  // the most recently used is first
  KeyedMap<SourceKey, typename std::list<std::pair<SourceKey, Value>>::iterator> by_key_;
};

}  // namespace longhaul::link
