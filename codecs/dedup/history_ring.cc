// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/history_ring.h"

#include <limits>

#include "codecs/byte_writer.h"

namespace longhaul::dedup {

Result<HistoryRing> HistoryRing::make(std::size_t bytes) {
  if (bytes < 2 * kRingStep || bytes % kRingStep != 0)
    return make_error_code(boost::system::errc::invalid_argument);
  auto memory = LazyMemory::make(bytes);
  if (!memory) return memory.error();
  HistoryRing ring(std::move(*memory));
  ring.lap_ = ring.head_ - ring.head_ % bytes;
  return ring;
}

std::uint64_t HistoryRing::place(std::size_t bytes) const {
  const std::uint64_t left = size() - at(head_);
  return bytes <= left ? head_ : head_ + left;
}

bool HistoryRing::fits(std::uint64_t offset, std::uint64_t size) const {
  if (offset < floor() || offset > kMaxVarint || size > this->size()) return false;
  return size <= this->size() - at(offset);
}

MutableBytes HistoryRing::reserve(std::uint64_t offset, std::size_t size) {
  assert(fits(offset, size));
  if (!left_out_.empty()) left_out_.remove({0, floor()}), left_out_.remove({offset, offset + size});
  if (offset + size > head_) {
    head_ = offset + size;
    if (head_ - lap_ >= this->size()) lap_ = head_ - head_ % this->size();
    if (head_ > ask_at_) make_ahead(kLead + kLead / 2, PageFiller::When::soon);
  }
  return {memory_.data() + at(offset), size};
}

void HistoryRing::make_ahead(std::uint64_t bytes, PageFiller::When when) {
  made_to_ = std::max(made_to_, head_);  // if the head jumped
  const std::uint64_t lap_end = made_to_ - made_to_ % size() + size();
  const std::uint64_t end = std::min({head_ + bytes, lap_end, make_to_});
  if (end > made_to_) {
    memory_.make_ahead(at(made_to_), at(made_to_) + (end - made_to_), when);
    made_to_ = end;
  }
  ask_at_ = made_to_ < make_to_ ? made_to_ - kLead / 2 : std::numeric_limits<std::uint64_t>::max();
}

void HistoryRing::on_quiet() {
  const std::uint64_t used = head_ - floor();
  if (used > kLead) make_ahead(std::min(used, kQuietLead), PageFiller::When::sometime);
}

void HistoryRing::leave_out(Interval range) {
  constexpr std::size_t kMostRanges = 4096;  // too many gaps: the range between them is given up, too
  left_out_.remove({0, floor()});
  left_out_.add(range);
  const auto& all = left_out_.intervals();
  if (all.size() > kMostRanges) left_out_.add({all.front().begin, all.back().end});
}

void HistoryRing::forget_before(std::uint64_t floor) {
  floor = std::min(floor, head_);
  std::uint64_t from = this->floor();
  while (from < floor) {
    const std::size_t begin = at(from);
    const std::size_t piece = std::min<std::uint64_t>(floor - from, size() - begin);
    memory_.release(begin, begin + piece);
    from += piece;
  }
  if (floor > forgotten_) {
    // Memory that was returned is allocated again.
    made_to_ = std::max(made_to_, head_);
    make_to_ = floor + size();
    ask_at_ = std::max(head_, made_to_ - kLead / 2);
  }
  forgotten_ = std::max(forgotten_, floor);
}

}  // namespace longhaul::dedup
