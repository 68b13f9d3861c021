// SPDX-License-Identifier: Apache-2.0
// What two HELLOs agree on for packets, and which of several lines both sides know.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/link/io/udp_endpoint.h"
#include "proxy/link/udp/packet_cipher.h"

namespace longhaul::link {

// The two HELLOs' agreement on packets; no endpoint: no UDP.
struct UdpTerms {
  udp::UdpEndpoint* endpoint = nullptr;
  std::uint64_t epoch = 0;
  udp::Cipher cipher = udp::Cipher::aes_128_gcm;
  UdpAddress peer{};  // unspecified where this side did not dial
  // One of several, which both sides know by its name.
  struct Path {
    std::uint64_t number;
    std::string name;
    udp::UdpEndpoint* endpoint;
    UdpAddress peer{};  // as above
  };
  std::vector<Path> paths{};  // none: one line, with the endpoint and the peer above
};

// The names are those of [[peer.path]]. A name that one side does not have is reported once, until the set of
// such names changes.
class PathAgreement {
 public:
  // The acceptor's answer: those of the offered names that this side has, too, by their numbers in the offer.
  // All of them arrive at `endpoint`.
  static std::vector<UdpTerms::Path> to_answer(const std::vector<std::string>& offered,
                                               std::span<const config::PeerPath> own,
                                               udp::UdpEndpoint* endpoint);
  // The dialler's result: those of its offer that are in the answer.
  static std::vector<UdpTerms::Path> answered(std::vector<UdpTerms::Path> offer,
                                              const std::vector<std::string>& answer);
  void note(const config::Peer& peer, std::span<const UdpTerms::Path> agreed);

 private:
  std::string missing_;  // as was logged last
};

}  // namespace longhaul::link
