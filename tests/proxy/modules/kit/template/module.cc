// SPDX-License-Identifier: Apache-2.0
#include "tests/proxy/modules/kit/template/module.h"

#include <algorithm>
#include <string_view>

namespace longhaul::lines {
namespace {

using modules::Ending;

std::string_view text(const Frame& frame) {
  const Bytes bytes = frame.bytes.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::optional<Frame>> Splitter::next() {
  const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(begin_ + searched_);
  const auto end = std::find(from, bytes_.end(), std::byte{'\n'});
  const auto size = static_cast<std::size_t>(end - bytes_.begin()) - begin_;
  if (size >= kMaxLineBytes) return make_error_code(boost::system::errc::message_size);
  if (end == bytes_.end()) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(std::exchange(begin_, 0)));
    searched_ = size;
    return std::optional<Frame>{};
  }
  Frame frame{Slice::copy_of(Bytes(bytes_).subspan(begin_, size + 1))};
  begin_ += size + 1;
  searched_ = 0;
  return std::optional(std::move(frame));
}

std::vector<Slice> Splitter::take_rest() {
  std::vector<Slice> rest;
  if (held_bytes() != 0) rest.push_back(Slice::copy_of(Bytes(bytes_).subspan(begin_)));
  *this = Splitter();
  return rest;
}

void Half::lan_ended(TimePoint, Ending ending) { ending == Ending::reset ? out_.abort() : out_.end_stream(); }
void Half::stream_ended(TimePoint, Ending ending) { ending == Ending::reset ? out_.abort() : out_.end_lan(); }

void Near::frame_from_lan(TimePoint, const Frame& request) {
  if (is_on_ && !is_opaque_ && is_greeting_ && unanswered_ == 0 && text(request) == "version\n") {
    ++counters_.round_trips_saved;
    return out_.to_lan(first_line_);
  }
  ++unanswered_;
  out_.pass_on(request.bytes);
}

void Near::frame_from_stream(TimePoint, const Frame& answer) {
  out_.to_lan(answer.bytes);
  if (first_line_.empty())
    first_line_ = answer.bytes;
  else if (unanswered_ > 0)
    --unanswered_;
}

void Near::from_twin(TimePoint, const Message& message, const Slice&) {
  // From a twin that says anything: what does not fit is another program's.
  if (std::get<Greeting>(message).bytes != first_line_.size()) return out_.abort();
  is_greeting_ = true;
}

void Far::frame_from_lan(TimePoint, const Frame& answer) {
  out_.pass_on(answer.bytes);
  if (!std::exchange(greeted_, true) && !text(answer).starts_with('-')) out_.tell(Greeting{answer.bytes.size()});
}

bool Protocol::takes(TimePoint now, const Frame&, modules::Way, Outputs& out, const modules::Surroundings& told) {
  if (half_) return true;
  if (side_ == twin::Side::near)
    half_ = std::make_unique<Near>(out);
  else
    half_ = std::make_unique<Far>(out);
  half_->on_surroundings(now, told);
  return true;
}

}  // namespace longhaul::lines
