// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/datagram_control.h"

#include <netinet/udp.h>

#include <catch2/catch.hpp>
#include <cstring>

using namespace longhaul::link::udp;
namespace asio = boost::asio;

TEST_CASE("the address to send from is written as the kernel reports it, in both families") {
  for (const char* text : {"192.0.2.7", "2001:db8::7"}) {
    const auto address = asio::ip::make_address(text);
    DatagramControl control;
    control.add_source(address);
    msghdr message{};
    control.attach_to(message);
    REQUIRE(message.msg_controllen > 0);
    const DatagramInfo info = DatagramControl::read(message);
    CHECK(info.to == address);
    CHECK(info.segment == 0);
    CHECK_FALSE(info.arrived.has_value());
  }
}

TEST_CASE("without an address and a segment size nothing is attached") {
  DatagramControl control;
  control.add_source({});
  msghdr message{};
  control.attach_to(message);
  CHECK(message.msg_control == nullptr);
  CHECK(message.msg_controllen == 0);
}

TEST_CASE("a segment size follows the address") {
  DatagramControl control;
  control.add_source(asio::ip::make_address("192.0.2.7"));
  control.add_segment(1200);
  msghdr message{};
  control.attach_to(message);
  const cmsghdr* first = CMSG_FIRSTHDR(&message);
  REQUIRE(first);
  const cmsghdr* second = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(first));
  REQUIRE(second);
  CHECK(second->cmsg_level == SOL_UDP);
  CHECK(second->cmsg_type == UDP_SEGMENT);
  std::uint16_t bytes = 0;
  REQUIRE(second->cmsg_len == CMSG_LEN(sizeof bytes));
  std::memcpy(&bytes, CMSG_DATA(second), sizeof bytes);
  CHECK(bytes == 1200);
  CHECK(CMSG_NXTHDR(&message, const_cast<cmsghdr*>(second)) == nullptr);
}

TEST_CASE("the size of joined datagrams is read, and an invalid one means a single datagram") {
  for (const int size : {1200, 0, -1}) {
    alignas(cmsghdr) std::byte memory[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_control = memory;
    message.msg_controllen = sizeof memory;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_len = CMSG_LEN(sizeof size);
    head->cmsg_level = SOL_UDP;
    head->cmsg_type = UDP_GRO;
    std::memcpy(CMSG_DATA(head), &size, sizeof size);
    CHECK(DatagramControl::read(message).segment == (size > 0 ? 1200u : 0u));
  }
}
