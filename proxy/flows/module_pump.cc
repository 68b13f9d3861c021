// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/module_pump.h"

#include <algorithm>

namespace longhaul::flows {

using modules::Way;
using Pump = LanSide::Pump;

bool ModulePump::run(const link::Session& session, const link::Token& session_id, ToClient to_client) {
  bool any = false;
  int reads_left = kReadsPerTurn;
  std::size_t bytes_left = kWrittenPerTurn;
  for (bool moved = true; moved;) {
    const link::Liveness& path = session.liveness();
    const bool ran = host_.run(link::Clock::now(), {session.outgoing().line_rate(), path.smoothed_rtt(),
                                                    path.contact(), session_id});
    any |= ran;
    moved = (to_client == ToClient::open && deliver(bytes_left)) || ran;
    moved = read(reads_left) || moved;
  }
  return any;
}

// Returns true if something was delivered, or the socket failed.
bool ModulePump::deliver(std::size_t& bytes_left) {
  if (lan_.down != Pump::running || host_.redials()) return false;
  if (lan_.has_preface() && !lan_.send_preface()) return lose_lan(), true;
  bool moved = false;
  while (!host_.to_lan().empty()) {
    if (bytes_left == 0) {
      lan_.wait_to_write();
      return moved;
    }
    const LanSide::Written written = lan_.send(host_.to_lan());
    if (written.sent == LanSide::Sent::waits) return moved;
    if (written.sent == LanSide::Sent::failure) return lose_lan(), true;
    host_.lan_took(written.size);
    bytes_left -= std::min(bytes_left, written.size);
    moved = true;
  }
  if (host_.lan_is_over()) {
    lan_.end_output();
    lan_.down = Pump::done;
  }
  return moved;
}

// Returns true if something was read, or the socket has ended.
bool ModulePump::read(int& reads_left) {
  if (lan_.up != Pump::running || host_.redials()) return false;
  if (!host_.takes_lan()) {
    lan_.watch_for_failure();
    return false;
  }
  if (reads_left-- == 0) {
    lan_.wait_to_read();
    return false;
  }
  const LanSide::Received received = lan_.receive(kReadBytes);
  if (host_.awaits_arrival()) host_.lan_arrived(lan_.unacknowledged());
  switch (received.got) {
    case LanSide::Got::nothing:
      lan_.wait_to_read();
      return false;
    case LanSide::Got::failure:
      lose_lan();
      return true;
    case LanSide::Got::end:
      lan_.up = Pump::done;
      host_.lan_ended(link::Clock::now(), modules::Ending::closed);
      return true;
    case LanSide::Got::bytes:
      break;
  }
  const auto now = link::Clock::now();
  if (received.size < kReadBytes) lan_.wait_to_read();
  ReadSpace& space = LanSide::read_space();
  if (received.size < kCopyBelow) {
    host_.from_lan(now, Slice::copy_of({space.memory + link::StreamWriter::kRecordRoom, received.size}));
  } else {
    space.memory = nullptr;
    host_.from_lan(now, std::move(space.slice).sub(link::StreamWriter::kRecordRoom, received.size));
    space.slice = {};
  }
  return true;
}

void ModulePump::lose_lan() {
  lan_.up = lan_.down = Pump::done;
  lan_.reset();
  lan_lost_ = true;
  host_.lan_ended(link::Clock::now(), modules::Ending::reset);
}

void ModulePump::report(FlowRecord& record) {
  record.module->counters = host_.module().counters();
  if (const auto detail = host_.module().detail(); detail != record.module->detail)
    record.module->detail = detail;
  if (const Reason reason = host_.reason(); reason != std::exchange(told_, reason)) tell_(record, reason);
}

void ModulePump::report_end(FlowRecord& record) {
  record.module->steps_aside = true;
  record.module->counters.steps_aside = 1;
  tell_(record, record.reason);
}

ModulePump::Left ModulePump::newly_left() {
  const Left now{host_.passes(Way::to_stream), host_.passes(Way::to_lan)};
  const Left before = std::exchange(left_, now);
  return {now.up && !before.up, now.down && !before.down};
}

}  // namespace longhaul::flows
