// SPDX-License-Identifier: Apache-2.0
// The local end of a socket: an address, an interface, or as the routing table chooses.
#pragma once
#include <sys/socket.h>

#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <string>

namespace longhaul::net {

struct LocalEnd {
  boost::asio::ip::address address;  // unspecified: by interface or route
  std::string interface;             // empty: by address or route

  // As configured: an address or the name of an interface; empty to use the routing table.
  static LocalEnd parse(const std::string& typed) {
    boost::system::error_code is_a_name;
    const auto address = boost::asio::ip::make_address(typed, is_a_name);
    return is_a_name ? LocalEnd{{}, typed} : LocalEnd{address, {}};
  }
  // The address to bind for a family. Only valid if fits().
  boost::asio::ip::address address_for(bool v6) const {
    if (address.is_unspecified())
      return v6 ? boost::asio::ip::address(boost::asio::ip::address_v6::any())
                : boost::asio::ip::address(boost::asio::ip::address_v4::any());
    return address;
  }
  bool fits(bool v6) const { return address.is_unspecified() || address.is_v6() == v6; }
  bool operator==(const LocalEnd&) const = default;
};

// Restricts the socket to this interface. Call before it is bound.
inline boost::system::error_code use_interface(int socket, const std::string& interface) {
  if (setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                 static_cast<socklen_t>(interface.size())) == 0)
    return {};
  return {errno, boost::system::system_category()};
}

}  // namespace longhaul::net
