// SPDX-License-Identifier: Apache-2.0
// Any datagram is parsed or refused, and what was parsed encodes to the same bytes. Both ends of the
// transactions over UDP stand datagrams that nobody sent, and real ones that were changed: nothing worse than
// a wrong byte being told.
#include "choices.h"
#include "fuzz/target.h"
#include "tools/measuring/trouble.h"
#include "tools/txn/exchange.h"
#include "tools/txn/protocol.h"

namespace longhaul::fuzz::txn_target {
using namespace longhaul::txn;

namespace {

void parse(Bytes bytes) {
  const auto datagram = parse_datagram(bytes);
  if (!datagram) return;
  Buffer again;
  encode(*datagram, again);
  fuzz::require(as_text(again) == as_text(bytes));
}

void converse(fuzz::Choices& choices) {
  Workload workload =
      standard(choices.byte() % 2 ? Script::eft_short : Script::filetransf_long, Protocol::udp);
  workload.file_bytes = 1 + choices.byte() * 16;
  workload.send_buffer = 31 + choices.byte();
  workload.window_bytes = 1 + choices.byte() * 8;
  workload.key = 0;
  Requester requester{workload, Family::ipv4};
  Responder responder{workload, Family::ipv4};
  TimePoint now{};
  requester.begin(0);
  std::uint32_t number = 0;
  Buffer out;
  while (!choices.empty()) {
    now += std::chrono::milliseconds{choices.byte()};
    const unsigned choice = choices.byte();
    Exchange& to = choice % 2 ? static_cast<Exchange&>(requester) : responder;
    Exchange& from = choice % 2 ? static_cast<Exchange&>(responder) : requester;
    if (choice % 8 < 5) {
      if (from.poll_transmit(now, out)) {
        if (choice % 16 == 4) out[choices.byte() % out.size()] ^= std::byte(choices.byte());
        if (choice % 16 != 3) to.receive(now, out);
      }
    } else if (choice % 8 == 5) {
      to.receive(now, choices.some(60));
    } else {
      to.on_timeout(now);
    }
    if (requester.done()) requester.begin(++number);
    fuzz::require(responder.requests() <= number + 1);
  }
}

}  // namespace

FUZZ_TARGET(txn) {
  const Bytes input = std::as_bytes(std::span(data, size));
  parse(input);
  fuzz::Choices choices{input};
  try {
    converse(choices);
  } catch (const measuring::Trouble& trouble) {  // a byte was changed on the way
    fuzz::require(*trouble.what() != '\0');
  }
  return 0;
}

}  // namespace longhaul::fuzz::txn_target
