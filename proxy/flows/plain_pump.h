// SPDX-License-Identifier: Apache-2.0
// Moves a flow's bytes between its socket and its stream unchanged, until one of the two has no more bytes,
// or no room. linked_flow.h decides what follows.
#pragma once
#include "proxy/flows/lan_side.h"

namespace longhaul::flows {

// Why the pump stopped.
enum class UpStop : std::uint8_t {
  lan_empty,  // or the limit per turn was reached
  no_room,    // the stream signals when there is room again
  lan_ended,
  lan_failed,
};
struct MovedUp {
  UpStop stop;
  bool wrote;  // wrote to the stream
};
MovedUp pump_up(LanSide& lan, link::Stream& stream);

enum class DownStop : std::uint8_t { stream_empty, lan_full, lan_failed };
struct MovedDown {
  DownStop stop;
  bool consumed;  // read from the stream, so that credit may have to be reported
};
MovedDown pump_down(LanSide& lan, link::Stream& stream, link::Duration round_trip);

}  // namespace longhaul::flows
