// SPDX-License-Identifier: Apache-2.0
// See read_ahead_file.h.
#include "proxy/modules/smb/smb2/read_ahead_file.h"

#include <algorithm>
#include <utility>

namespace longhaul::smb::smb2 {
namespace {

// Size of pushed pieces: small enough that the near half answers while the rest is still arriving.
constexpr std::size_t kPieceBytes = 64 << 10;
static_assert(kPieceBytes <= kMaxAttachedBytes);

}  // namespace

std::vector<Message> ReadAheadFile::void_fetched() {
  fetches_.give_up();
  policy_.forget_fetched();
  return swallowed_.take_all();
}

LearntLimits::Closed ReadAheadFile::closed() const {
  return {.was_pushed = pushes_.told() > 0,
          .unread_bytes = policy_.ahead_bytes(),
          .is_scattered = policy_.scattered(),
          .size = policy_.end_of_file().value_or(0)};
}

IntervalSet ReadAheadFile::missing_of(const Asked& asked) const {
  IntervalSet missing;
  missing.add({asked.missing_from, asked.missing_to});
  pushes_.remove_from(missing, asked.stamp);
  return missing;
}

IntervalSet ReadAheadFile::holes_in(IntervalSet missing) const {
  fetches_.remove_from(missing);
  return missing;
}

std::vector<Message> ReadAheadFile::take_stranded() {
  return swallowed_.take_if([this](IntervalSet missing) {
    fetches_.remove_from(missing);
    return !missing.empty() || !is_usable_;
  });
}

ReadAheadFile::Came ReadAheadFile::fetched(std::uint64_t number, const Frame& frame, const Element& answer,
                                           Outputs& out) {
  const auto fetch = fetches_.take(number);
  if (!fetch) return Came::unexpected;  // dropped meanwhile
  const Interval range = *fetch;
  const Result<ReadResponse> response = parse_read_response(answer.bytes);
  if (answer.header.status == Status::success && response && response->data.size() <= range.size()) {
    const std::uint64_t end = range.begin + response->data.size();
    // 3.3.5.12: a READ returns less only at the end of the file.
    const bool is_complete = end == range.end;
    if (!is_complete) policy_.on_end_of_file(end);
    const auto at = static_cast<std::size_t>(response->data.data() - frame.bytes.bytes().data());
    push(range.begin, response->data.empty() ? Slice{} : frame.bytes.sub(at, response->data.size()), out);
    return is_complete ? Came::in_full : Came::in_part;
  }
  if (answer.header.status == Status::end_of_file) {
    // It ends here or before: this range need not be fetched, but it is not a response to a READ.
    const std::uint64_t end = policy_.end_of_file().value_or(~0ull);
    if (end > range.begin) make_unusable();  // it is shorter than it was when it was opened
  } else {
    make_unusable();  // a lock, or missing rights: the client must receive the error itself
  }
  return Came::in_part;
}

void ReadAheadFile::push(std::uint64_t offset, const Slice& bytes, Outputs& out) {
  // Data pushed from now on must not complete a READ that the server answers: it would be answered twice.
  for (const MessageId id : std::exchange(at_server_, {})) out.tell(Forwarded{number_of(id)});
  std::size_t done = 0;
  do {
    const std::size_t piece = std::min(kPieceBytes, bytes.size() - done);
    const Interval range{offset + done, offset + done + piece};
    Ahead ahead{.open = key_, .stamp = stamp_, .offset = range.begin};
    ahead.length = static_cast<std::uint32_t>(piece);
    ahead.end_of_file = policy_.end_of_file();
    out.tell(ahead, piece == 0 ? Slice{} : bytes.sub(done, piece));
    pushes_.add(range, stamp_, ahead.end_of_file);
    done += piece;
  } while (done < bytes.size());
  swallowed_.pushed({offset, offset + bytes.size()}, policy_.end_of_file());
}

}  // namespace longhaul::smb::smb2
