// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/policy_route.h"

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/system/error_code.hpp>
#include <cstring>
#include <string>

namespace longhaul::intercept {

namespace {

constexpr unsigned char kFamilies[] = {AF_INET, AF_INET6};

enum class Change { add, remove };

// One rtnetlink request: header, a fixed struct, attributes. All requests here are small.
class Request {
 public:
  template <class Body>
  Request(int type, int flags, const Body& body) {
    header_.nlmsg_type = static_cast<std::uint16_t>(type);
    header_.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(&header_, sizeof header_);
    append(&body, sizeof body);
  }

  void attribute(int type, std::uint32_t value) {
    const rtattr attribute{static_cast<std::uint16_t>(RTA_LENGTH(sizeof value)),
                           static_cast<std::uint16_t>(type)};
    append(&attribute, sizeof attribute);
    append(&value, sizeof value);
  }

  // Zero, or the kernel's errno.
  int send(int socket) {
    header_.nlmsg_len = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (::sendto(socket, bytes_.data(), bytes_.size(), 0, reinterpret_cast<sockaddr*>(&kernel),
                 sizeof kernel) < 0)
      return errno;
    struct {
      nlmsghdr header;
      nlmsgerr answer;
      char echoed_request[1024];
    } reply{};
    const ssize_t size = ::recv(socket, &reply, sizeof reply, 0);
    if (size < 0) return errno;
    if (reply.header.nlmsg_type != NLMSG_ERROR) return EPROTO;
    return -reply.answer.error;
  }

 private:
  void append(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }

  nlmsghdr header_{};
  std::string bytes_;  // every part's size is a multiple of four, as rtnetlink(7) requires
};

int change_rule(int socket, const PolicyRoute& route, Change change, unsigned char family) {
  fib_rule_hdr body{};
  body.family = family;
  body.action = FR_ACT_TO_TBL;
  Request request(change == Change::add ? RTM_NEWRULE : RTM_DELRULE,
                  change == Change::add ? NLM_F_CREATE | NLM_F_EXCL : 0, body);
  request.attribute(FRA_PRIORITY, route.priority);
  request.attribute(FRA_FWMARK, route.mark);
  request.attribute(FRA_TABLE, route.table);
  return request.send(socket);
}

int change_route(int socket, const PolicyRoute& route, Change change, unsigned char family) {
  rtmsg body{};
  body.rtm_family = family;
  body.rtm_table = RT_TABLE_UNSPEC;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = RT_SCOPE_HOST;
  body.rtm_type = RTN_LOCAL;
  Request request(change == Change::add ? RTM_NEWROUTE : RTM_DELROUTE,
                  change == Change::add ? NLM_F_CREATE | NLM_F_EXCL : 0, body);
  request.attribute(RTA_TABLE, route.table);
  request.attribute(RTA_OIF, ::if_nametoindex("lo"));
  return request.send(socket);
}

class Socket {
 public:
  Socket() : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

config::TextError refusal(const char* what, int error) {
  if (error == EPERM) return {std::string(what) + " cannot be added without root or CAP_NET_ADMIN"};
  if (error == ENETDOWN) return {std::string(what) + " cannot be added: the interface lo is down"};
  return {std::string(what) + " cannot be added: " +
          boost::system::error_code(error, boost::system::system_category()).message()};
}

}  // namespace

config::TextResult<void> add(const PolicyRoute& route) {
  const Socket socket;
  if (socket.fd() < 0) return refusal("the routing rule", errno);
  for (const unsigned char family : kFamilies) {
    const int rule = change_rule(socket.fd(), route, Change::add, family);
    if (family == AF_INET6 && (rule == EAFNOSUPPORT || rule == EOPNOTSUPP)) return {};
    if (rule != 0 && rule != EEXIST) {
      remove(route);
      return refusal("the routing rule for intercepted packets", rule);
    }
    const int local = change_route(socket.fd(), route, Change::add, family);
    if (local != 0 && local != EEXIST) {
      remove(route);
      return refusal("the local route for intercepted packets", local);
    }
  }
  return {};
}

void remove(const PolicyRoute& route) {
  const Socket socket;
  for (const unsigned char family : kFamilies) {
    change_rule(socket.fd(), route, Change::remove, family);
    change_route(socket.fd(), route, Change::remove, family);
  }
}

}  // namespace longhaul::intercept
