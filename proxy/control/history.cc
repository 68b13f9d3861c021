// SPDX-License-Identifier: Apache-2.0
// The rings, and their file format: a line that names the format, numbers of eight bytes, and a checksum of
// all preceding bytes.
#include "proxy/control/history.h"

#include <xxhash.h>

#include <algorithm>

#include "codecs/byte_reader.h"

namespace longhaul::control {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kFormat = "longhaul history 1\n";
// In about the year 2200: a later time indicates a broken clock or a damaged file.
constexpr std::uint64_t kLatest = 7'258'118'400;

void put(std::string& text, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift & 0xff);
}

std::uint64_t checksum(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

auto numbers_of(auto& slot) {
  return std::array{&slot.bytes.lan_in,  &slot.bytes.lan_out, &slot.bytes.wan_in,
                    &slot.bytes.wan_out, &slot.most_flows,    &slot.samples};
}

}  // namespace

// Slots between the newest and `number` are empty; so are the slots after the current time if the clock was
// set back.
void History::Series::move_to(std::uint64_t number) {
  const bool forward = number > newest_;
  const auto distance = forward ? number - newest_ : newest_ - number;
  const auto emptied = std::min<std::uint64_t>(distance, slots_.size());
  const auto first = forward ? number + 1 - emptied : number + 1;
  for (std::uint64_t i = 0; i < emptied; ++i) slots_[(first + i) % slots_.size()] = {};
  newest_ = number;
}

void History::Series::add(std::uint64_t unix_seconds, const Slot& sample) {
  const auto number = unix_seconds / static_cast<std::uint64_t>(step_.count());
  if (number != newest_) move_to(number);
  auto& slot = slots_[number % slots_.size()];
  slot.bytes += sample.bytes;
  slot.most_flows = std::max(slot.most_flows, sample.most_flows);
  slot.samples += sample.samples;
}

History::History() : series_{Series{1s, 600}, Series{60s, 1440}, Series{3600s, 720}} {}

void History::add(std::uint64_t unix_seconds, const Slot& sample) {
  if (unix_seconds > kLatest) return;
  for (Series& series : series_) series.add(unix_seconds, sample);
}

const History::Series* History::find(std::chrono::seconds step) const {
  const auto* const found = std::ranges::find(series_, step, &Series::step);
  return found == series_.end() ? nullptr : found;
}

std::string History::text() const {
  std::string text(kFormat);
  for (const Series& series : series_) {
    put(text, series.newest_);
    for (const Slot& slot : series.slots_)
      for (const auto* number : numbers_of(slot)) put(text, *number);
  }
  put(text, checksum(text));
  return text;
}

std::optional<History> History::parse(std::string_view text) {
  if (!text.starts_with(kFormat) || text.size() < kFormat.size() + 8) return std::nullopt;
  const auto content = text.substr(0, text.size() - 8);
  if (ByteReader(as_bytes(text.substr(content.size()))).fixed64() != checksum(content)) return std::nullopt;
  ByteReader reader(as_bytes(content.substr(kFormat.size())));
  History history;
  for (Series& series : history.series_) {
    const auto newest = reader.fixed64();
    if (!newest || *newest > kLatest / static_cast<std::uint64_t>(series.step_.count())) return std::nullopt;
    series.newest_ = *newest;
    for (Slot& slot : series.slots_)
      for (auto* number : numbers_of(slot)) {
        const auto read = reader.fixed64();
        if (!read) return std::nullopt;
        *number = *read;
      }
  }
  if (reader.remaining() > 0) return std::nullopt;
  return history;
}

}  // namespace longhaul::control
