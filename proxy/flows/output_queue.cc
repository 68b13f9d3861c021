// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/output_queue.h"

#include <algorithm>
#include <utility>

#include "proxy/modules/twin_records.h"

namespace longhaul::flows {
namespace {

constexpr std::size_t kMinPiece = 256;  // of a message that does not fit

}  // namespace

void OutputQueue::write(Slice bytes, bool isolated) {
  if (!bytes.empty()) put(isolated ? Item::Kind::isolated : Item::Kind::raw, std::move(bytes));
}

void OutputQueue::write_message(Slice message) { put(Item::Kind::message, std::move(message)); }

void OutputQueue::step_aside() {
  if (!std::exchange(aside_, true)) put(Item::Kind::aside, {});
}

void OutputQueue::end() {
  if (!std::exchange(ended_, true)) put(Item::Kind::end, {});
}

void OutputQueue::put(Item::Kind kind, Slice bytes) {
  if (!has_reader()) return;
  bytes_ += bytes.size();
  items_.push_back({kind, std::move(bytes)});
}

bool OutputQueue::flush() {
  bool moved = false;
  while (!items_.empty() && has_reader()) {
    Item& item = items_.front();
    switch (item.kind) {
      case Item::Kind::raw:
      case Item::Kind::isolated:
        if (stream_.writer().may_write() == 0) return moved;
        moved = true;
        if (!flush_raw(item)) continue;
        break;
      case Item::Kind::message:
      case Item::Kind::aside:
        if (!flush_record(item)) return moved;
        moved = true;
        break;
      case Item::Kind::end:
        stream_.writer().end();
        moved = true;
        break;
    }
    items_.pop_front();
  }
  if (!items_.empty() && !has_reader()) {
    items_.clear();
    bytes_ = 0;
  }
  return moved;
}

// Returns true when all of it is written.
bool OutputQueue::flush_raw(Item& item) {
  const std::size_t room = stream_.writer().may_write();
  const bool isolated = item.kind == Item::Kind::isolated;
  if (room < item.bytes.size()) {
    stream_.writer().write(item.bytes.sub(0, room), isolated);
    bytes_ -= room;
    item.bytes = item.bytes.from(room);
    return false;
  }
  bytes_ -= item.bytes.size();
  stream_.writer().write(std::move(item.bytes), isolated);
  return true;
}

// Returns true when all of it is written. If credit is short, a message is sent in pieces, so that a window
// smaller than the message cannot block it for ever.
bool OutputQueue::flush_record(Item& item) {
  constexpr std::size_t kCost = link::message_cost(modules::kTwinRecordHead);
  for (;;) {
    const std::size_t room = stream_.writer().may_write();
    const std::size_t size = item.bytes.size();
    const std::size_t whole = std::min(size, modules::kMaxTwinPiece);
    const std::size_t fits = room > kCost ? std::min(whole, room - kCost) : 0;
    // Very small pieces would cost more than they gain.
    if (room < kCost || (fits < whole && fits < kMinPiece)) {
      stream_.writer().wait_for_room();
      return false;
    }
    const bool last = fits == size;
    const auto kind = item.kind == Item::Kind::aside ? modules::TwinRecord::aside
                      : last                         ? modules::TwinRecord::message
                                                     : modules::TwinRecord::piece;
    const std::byte head{static_cast<std::uint8_t>(kind)};
    stream_.writer().write_message(Slice::joined({&head, 1}, item.bytes.bytes().first(fits)).bytes());
    bytes_ -= fits;
    if (last) return true;
    item.bytes = item.bytes.from(fits);
  }
}

}  // namespace longhaul::flows
