// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/twin_loads.h"

#include <utility>

#include "codecs/reduction/errors.h"

namespace longhaul::reduction {
namespace {

// Loads that failed and are not reported yet; a twin that keeps requesting and reads no answers violates the
// protocol.
constexpr std::size_t kMaxCannot = 16'384;
// Limit of simultaneous loads for the decoder; others wait, so that no peer occupies the disk alone. No
// honest peer has that many in progress.
constexpr std::uint64_t kBroughtAtOnce = 8u << 20;
constexpr std::size_t kMaxToBring = 16'384;

}  // namespace

Result<TwinLoads::Brought> TwinLoads::bring(std::uint64_t stream, const BlockHeader& sent, Bytes encoded) {
  if (auto known = left_.find(stream); known != left_.end())
    return known->second == 0 ? Brought::done : Brought::waits;
  auto placed = decoder_.placed(stream, sent);
  if (!placed) return placed.error();
  const BlockHeader& header = *placed;
  auto block = parse_encoded(header, encoded);
  if (!block) return block.error();
  if (!decoder_.ring()) return Error::malformed_block;
  auto loads = parse_loads(block->loads, header.ring_offset);
  if (!loads) return loads.error();
  if (cannot_.size() > kMaxCannot || waiting_.size() > kMaxToBring) return Error::malformed_block;
  // One more, so that the stream is not reported as ready before this returns.
  std::size_t& left = left_[stream] = loads->size() + 1;
  for (const Load& load : *loads) waiting_.push_back({stream, load});
  start();
  return --left == 0 ? Brought::done : Brought::waits;
}

void TwinLoads::start() {
  while (!waiting_.empty() && under_way_bytes_ < kBroughtAtOnce) {
    const Wanted one = waiting_.front();
    waiting_.pop_front();
    const SegmentName* name = own_.own(one.load.segment);
    if (!name || !decoder_.ring()->fits(one.load.ring_offset, one.load.length)) {
      finish(one, std::nullopt);
      continue;
    }
    under_way_bytes_ += one.load.length;
    under_way_[store_.load(*name, one.load.offset, one.load.length)] = one;
  }
}

bool TwinLoads::on_loaded(LoadId load, const std::optional<Slice>& bytes) {
  auto found = under_way_.find(load);
  if (found == under_way_.end()) return false;
  const Wanted one = found->second;
  under_way_.erase(found);
  under_way_bytes_ -= one.load.length;
  finish(one, bytes);
  start();
  return true;
}

// A failed load is reported; the block that needs it will be requested again.
void TwinLoads::finish(const Wanted& one, const std::optional<Slice>& bytes) {
  if (!bytes || !decoder_.bring(one.load.ring_offset, bytes->bytes())) {
    decoder_.leave_out({one.load.ring_offset, one.load.ring_offset + one.load.length});
    cannot_.push_back(cannot_message(one.load));
  }
  auto left = left_.find(one.stream);
  if (left != left_.end() && left->second > 0 && --left->second == 0) ready_.push_back(one.stream);
}

std::optional<std::uint64_t> TwinLoads::poll_ready() {
  if (ready_.empty()) return std::nullopt;
  std::uint64_t stream = ready_.front();
  ready_.pop_front();
  return stream;
}

std::optional<Slice> TwinLoads::poll_message() {
  if (cannot_.empty()) return std::nullopt;
  Slice message = std::move(cannot_.front());
  cannot_.pop_front();
  return message;
}

}  // namespace longhaul::reduction
