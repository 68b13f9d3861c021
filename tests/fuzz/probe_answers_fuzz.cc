// SPDX-License-Identifier: Apache-2.0
// Answers of any router or host to a probe: ICMP errors, echo replies, TCP segments and their options are
// read within their bounds, alone or as changes of a right answer. The first byte chooses family and kind.
#include <cstring>
#include <memory>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "tools/probe/made_packets.h"
#include "tools/probe/options.h"

namespace longhaul::fuzz::probe_answers_target {
using namespace longhaul::probe;

namespace {

void read_everything(const Flow& flow, Bytes input) {
  const auto exact = std::make_unique<std::byte[]>(input.size());  // so that the sanitizer sees its end
  if (!input.empty()) std::memcpy(exact.get(), input.data(), input.size());
  const Bytes bytes(exact.get(), input.size());
  for (const auto& answer : {read_icmp(flow, bytes), read_tcp(flow, bytes)}) {
    if (!answer) continue;
    require(answer->ip_bytes >= bytes.size());
    if (answer->tcp_options) require(answer->tcp_options->options.others.size() <= 40);
  }
  (void)read_header_options(bytes);
  (void)read_saved_syn(bytes);
  if (const auto options = read_tcp_options(bytes)) {
    TcpOptions known = *options;
    known.others.clear();
    require(read_tcp_options(write_tcp_options(known)) == known);
  }
}

}  // namespace

FUZZ_TARGET(probe_answers) {
  if (size == 0) return 0;
  fuzz::Choices choices{Bytes(reinterpret_cast<const std::byte*>(data), size)};
  const unsigned first = choices.byte();
  const Flow flow = made::flow_of(first & 1 ? Family::v6 : Family::v4, first & 2   ? Kind::tcp
                                                                       : first & 4 ? Kind::icmp
                                                                                   : Kind::udp);
  if (first & 8) {  // a right answer, some bytes of it changed, and cut
    auto packet = made::icmp_error(flow, choices.byte(), choices.byte(),
                                   make_probe(flow, 3, 80 + choices.byte()), choices.byte());
    const unsigned changes = choices.below(8);
    for (unsigned i = 0; i < changes; ++i)
      packet[(choices.byte() | choices.byte() << 8) % packet.size()] = static_cast<std::byte>(choices.byte());
    packet.resize(packet.size() - std::min<std::size_t>(packet.size(), choices.byte()));
    read_everything(flow, packet);
    return 0;
  }
  read_everything(flow, choices.exactly(size));
  return 0;
}

}  // namespace longhaul::fuzz::probe_answers_target
