// SPDX-License-Identifier: Apache-2.0
// Remembers for each destination whether replies to clients' addresses return through this proxy (source =
// auto). Pure.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <map>

namespace longhaul::flows {

class SourceMemory {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Known : std::uint8_t { nothing, client_answered, only_proxy_answered };

  static constexpr std::chrono::minutes kRemembered{10};
  static constexpr std::size_t kDestinations = 4096;  // some 100 bytes each

  Known about(const boost::asio::ip::address& server, TimePoint now) const;
  void learn(const boost::asio::ip::address& server, Known what, TimePoint now);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Known what;
    TimePoint until;
  };
  std::map<boost::asio::ip::address, Entry> entries_;
};

}  // namespace longhaul::flows
