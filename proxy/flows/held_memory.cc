// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/held_memory.h"

namespace longhaul::flows {
using namespace std::chrono_literals;
namespace {

// If the modules' memory is used up: how much a flow may still hold, so that small frames continue; how often
// the host checks whether there is room again; after how long a stalled flow that holds parts of a frame
// continues without its module; and how often a flow with frames that wait for responses reads one more piece
// from the stream.
constexpr std::size_t kHeldInAnyCase = 64 * 1024;
// The same for a module's state about the connection: a few thousand open files.
constexpr std::size_t kStateInAnyCase = 1024 * 1024;
constexpr auto kLookAgainAfter = 50ms;
constexpr auto kPatienceWithoutMemory = 1s;

}  // namespace

void HeldMemory::count(const Parts& parts) {
  memory_->add(total(parts));
  memory_->remove(total(counted_));
  counted_ = parts;
}

bool HeldMemory::lan_is_held_back() const { return is_short() && counted_.bytes > kHeldInAnyCase; }

bool HeldMemory::stream_is_held_back() const { return is_short() && counted_.queued > kHeldInAnyCase; }

bool HeldMemory::refuses(std::size_t bytes) const { return is_short() && bytes > kHeldInAnyCase; }

bool HeldMemory::take_piece(TimePoint now) {
  if (stream_is_held_back() && now - fed_at_ < kPatienceWithoutMemory) return false;
  fed_at_ = now;
  return true;
}

// First, reading from the LAN stops. That alone could last for ever, because incomplete frames are useless,
// so a flow that waits for nothing else continues without its module. The same applies to a flow with a large
// state about its connection; it is read meanwhile, because only the LAN reports closed files.
bool HeldMemory::must_leave_after(TimePoint now, const Run& run) {
  const bool held_back = run.reads_lan && lan_is_held_back();
  const bool knows_much = run.reads_lan && is_short() && counted_.state > kStateInAnyCase;
  look_again_at_.reset();
  if (run.reads_stream && stream_is_held_back()) look_again_at_ = now + kLookAgainAfter;
  if (!held_back && !knows_much) {
    held_back_since_.reset();
    return false;
  }
  look_again_at_ = now + kLookAgainAfter;
  if (!held_back_since_ || (run.progress && !knows_much)) held_back_since_ = now;
  return now - *held_back_since_ >= kPatienceWithoutMemory;
}

}  // namespace longhaul::flows
