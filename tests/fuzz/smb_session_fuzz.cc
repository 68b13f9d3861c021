// SPDX-License-Identifier: Apache-2.0
// Recorded sessions of real clients and servers, frame by frame, through both halves of the SMB module: SMB1
// and SMB2, signed and encrypted too, on either port. The first byte of the input chooses port and
// surroundings; then come pieces: whose it is and what happens after it, a length, the bytes.
// tests/fuzz/capture_smb_seeds writes such inputs. Nothing may crash, and the halves keep to the modules'
// contract.
#include "fuzz/target.h"
#include "fuzz/watched_module.h"
#include "tests/proxy/modules/smb/as_told.h"

namespace longhaul::fuzz::smb_session_target {

namespace {

// Of a piece's first byte.
constexpr unsigned kServers = 1, kWaits = 2, kTimePasses = 4, kEnds = 8;

void everything(Watched& near, Watched& far, link::TimePoint now) {
  for (int i = 0; i < 10'000; ++i) {
    const bool up = deliver(near, far, now), down = deliver(far, near, now);
    if (!up && !down) break;
  }
  near.to_lan.clear(), far.to_lan.clear();  // the recording has what they say
}

}  // namespace

FUZZ_TARGET(smb_session) {
  Choices choices(std::as_bytes(std::span(data, size)));
  const unsigned options = choices.byte();
  const std::uint16_t port = options & 1 ? 139 : 445;
  Watched near(smb::Side::near, port), far(smb::Side::far, port);
  link::TimePoint now{};
  smb::Surroundings told;
  told.line_bytes_per_second = options & 2 ? 0 : 6'100'000;
  told.round_trip = std::chrono::milliseconds(options & 4 ? 0 : 100);
  told.stream_room = 1 << 20;
  for (Watched* side : {&near, &far}) {
    side->module.on_surroundings(now, as_told(told));
    side->collect();
  }
  while (!choices.empty() && !near.aborted && !far.aborted) {
    const unsigned kind = choices.byte();
    const std::size_t high = choices.byte(), low = choices.byte();
    const Bytes bytes = choices.exactly(high << 8 | low);
    Watched& side = kind & kServers ? far : near;
    if (!bytes.empty()) side.from_lan(now, Slice::copy_of(bytes));
    if (kind & kTimePasses) {
      now += std::chrono::milliseconds(500);
      for (Watched* each : {&near, &far}) {
        if (each->done()) continue;
        each->module.on_timeout(now);
        each->collect();
      }
    }
    if (kind & kEnds) side.end(now);
    if (!(kind & kWaits)) everything(near, far, now);
  }
  everything(near, far, now);
  near.end(now), far.end(now);
  everything(near, far, now);
  return 0;
}

}  // namespace longhaul::fuzz::smb_session_target
