// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/plain_pump.h"

namespace longhaul::flows {

MovedUp pump_up(LanSide& lan, link::Stream& stream) {
  bool wrote = false;
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const std::size_t room = std::min(stream.writer().may_write(), kReadBytes);
    if (room == 0) return {UpStop::no_room, wrote};
    const LanSide::Received received = lan.receive(room);
    if (received.got == LanSide::Got::nothing) break;
    if (received.got == LanSide::Got::failure) return {UpStop::lan_failed, wrote};
    if (received.got == LanSide::Got::end) return {UpStop::lan_ended, wrote};
    ReadSpace& space = LanSide::read_space();
    if (received.size < kCopyBelow) {
      stream.writer().write(Bytes(space.memory + link::StreamWriter::kRecordRoom, received.size));
    } else {
      std::byte* memory = std::exchange(space.memory, nullptr);
      stream.writer().write_in_place(std::move(space.slice), memory, received.size);
    }
    wrote = true;
    if (received.size < room) break;
  }
  return {UpStop::lan_empty, wrote};
}

MovedDown pump_down(LanSide& lan, link::Stream& stream, link::Duration round_trip) {
  bool consumed = false;
  while (!stream.reader().readable().empty()) {
    const LanSide::Written written = lan.send(stream.reader().readable());
    if (written.sent == LanSide::Sent::waits) return {DownStop::lan_full, consumed};
    if (written.sent == LanSide::Sent::failure) return {DownStop::lan_failed, consumed};
    stream.reader().consume(written.size, link::Clock::now(), round_trip);
    consumed = true;
  }
  return {DownStop::stream_empty, consumed};
}

}  // namespace longhaul::flows
