// SPDX-License-Identifier: Apache-2.0
// Sends one nfnetlink request, NFT_MSG_GETOBJ, and reads the reply (linux/netfilter/nf_tables.h).
#include "proxy/intercept/nft_counters.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace longhaul::intercept {

namespace {

using Attribute = std::span<const char>;

void append_attribute(std::string& message, std::uint16_t type, std::string_view value) {
  const nlattr head{static_cast<std::uint16_t>(NLA_HDRLEN + value.size()), type};
  message.append(reinterpret_cast<const char*>(&head), sizeof head).append(value);
  message.resize(NLA_ALIGN(message.size()));
}

std::string request_for(const std::string& table, std::string_view counter) {
  std::string message(NLMSG_HDRLEN, '\0');
  const nfgenmsg family{.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0, .res_id = 0};
  message.append(reinterpret_cast<const char*>(&family), sizeof family);
  append_attribute(message, NFTA_OBJ_TABLE, table + '\0');
  append_attribute(message, NFTA_OBJ_NAME, std::string(counter) + '\0');
  const std::uint32_t type = htonl(NFT_OBJECT_COUNTER);
  append_attribute(message, NFTA_OBJ_TYPE, {reinterpret_cast<const char*>(&type), sizeof type});
  nlmsghdr head{};
  head.nlmsg_len = static_cast<std::uint32_t>(message.size());
  head.nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ;
  head.nlmsg_flags = NLM_F_REQUEST;
  std::memcpy(message.data(), &head, sizeof head);
  return message;
}

std::optional<Attribute> find_attribute(std::span<const char> attributes, std::uint16_t wanted) {
  while (attributes.size() >= NLA_HDRLEN) {
    nlattr head;
    std::memcpy(&head, attributes.data(), sizeof head);
    if (head.nla_len < NLA_HDRLEN || head.nla_len > attributes.size()) return std::nullopt;
    if ((head.nla_type & NLA_TYPE_MASK) == wanted)
      return attributes.subspan(NLA_HDRLEN, head.nla_len - NLA_HDRLEN);
    attributes = attributes.subspan(std::min<std::size_t>(NLA_ALIGN(head.nla_len), attributes.size()));
  }
  return std::nullopt;
}

std::uint64_t packets_in(std::span<const char> answer) {
  constexpr std::size_t kHeads = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(nfgenmsg));
  nlmsghdr head;
  if (answer.size() < kHeads) return 0;
  std::memcpy(&head, answer.data(), sizeof head);
  if (head.nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWOBJ)) return 0;
  const auto data = find_attribute(answer.subspan(kHeads), NFTA_OBJ_DATA);
  const auto packets = data ? find_attribute(*data, NFTA_COUNTER_PACKETS) : std::nullopt;
  if (!packets || packets->size() != sizeof(std::uint64_t)) return 0;
  std::uint64_t number = 0;
  for (const char byte : *packets) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

}  // namespace

std::vector<std::uint64_t> counted_packets(const std::string& table,
                                           std::span<const std::string_view> counters) {
  std::vector<std::uint64_t> counts(counters.size(), 0);
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (socket < 0) return counts;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const std::string message = request_for(table, counters[i]);
    std::array<char, 1024> answer;
    if (::send(socket, message.data(), message.size(), 0) < 0) break;
    // The reply is available when send returns.
    const ssize_t size = ::recv(socket, answer.data(), answer.size(), MSG_DONTWAIT);
    if (size > 0) counts[i] = packets_in({answer.data(), static_cast<std::size_t>(size)});
  }
  ::close(socket);
  return counts;
}

}  // namespace longhaul::intercept
