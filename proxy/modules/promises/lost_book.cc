// SPDX-License-Identifier: Apache-2.0
// One line per record: client, server, port, cause, the near daemon's number, whether a reader was told,
// ranges, share, path, its spelling (not before version 2). Numbers are decimal, addresses and UTF-16
// hexadecimal. The first line names the format, the last one is a checksum of everything before it.
#include "proxy/modules/promises/lost_book.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

namespace longhaul::promises {
namespace {

constexpr std::string_view kTitle = "longhaul lost-writes 2\n", kTitleBefore = "longhaul lost-writes 1\n";
static_assert(kTitle.size() == kTitleBefore.size());
constexpr std::size_t kSumBytes = 4 + 16 + 1;  // "sum ", hex digits, line break
constexpr std::string_view kDigits = "0123456789abcdef";

std::string sum_line(std::string_view text) {
  char line[kSumBytes + 1];
  std::snprintf(line, sizeof line, "sum %016llx\n",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return line;
}

void put_byte(std::string& out, unsigned value) {
  out += kDigits[value >> 4 & 15], out += kDigits[value & 15];
}

void put(std::string& out, const std::array<std::byte, 16>& address) {
  for (const std::byte byte : address) put_byte(out, std::to_integer<unsigned>(byte));
  out += ' ';
}

// Preceded by a dash, so that an empty name is a field too.
void put(std::string& out, std::u16string_view name) {
  out += '-';
  for (const char16_t letter : name) put_byte(out, letter >> 8), put_byte(out, letter & 0xFF);
}

// Fields from the front of a line; after an invalid one all are invalid.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}
  bool at_end() const { return ok_ && rest_.empty(); }

  template <class Number>
  Number number() {
    return to_number<Number>(field());
  }
  std::array<std::byte, 16> address() {
    std::array<std::byte, 16> result{};
    const std::string_view digits = field();
    if (digits.size() != 2 * result.size()) return fail(), result;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::byte(value_of(digits.substr(2 * i, 2)));
    return result;
  }
  std::u16string name() {
    std::string_view digits = field();
    if (!digits.starts_with('-') || digits.size() % 4 != 1) return fail(), std::u16string{};
    std::u16string result;
    for (digits.remove_prefix(1); !digits.empty(); digits.remove_prefix(4))
      result += static_cast<char16_t>(value_of(digits.substr(0, 4)));
    return result;
  }
  std::vector<Interval> ranges() {
    std::vector<Interval> result;
    for (std::string_view list = field(); !list.empty();) {
      const std::string_view one = cut(list, ',');
      const auto dash = one.find('-');
      if (dash == std::string_view::npos || result.size() == Loss::kMostRanges) return fail(), result;
      const Interval range{to_number<std::uint64_t>(one.substr(0, dash)),
                           to_number<std::uint64_t>(one.substr(dash + 1))};
      if (range.begin >= range.end) return fail(), result;
      result.push_back(range);
    }
    return result;
  }

 private:
  static std::string_view cut(std::string_view& text, char end) {
    const auto size = text.find(end);
    const auto taken = text.substr(0, size);
    text.remove_prefix(size == std::string_view::npos ? text.size() : size + 1);
    return taken;
  }
  std::string_view field() { return ok_ ? cut(rest_, ' ') : std::string_view{}; }
  template <class Number>
  Number to_number(std::string_view digits) {
    Number value{};
    const auto* end = digits.data() + digits.size();
    const auto [read, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc{} || read != end) fail();
    return value;
  }
  unsigned value_of(std::string_view digits) {
    unsigned value = 0;
    for (const char digit : digits) {
      const auto at = kDigits.find(digit);
      if (at == std::string_view::npos) return fail(), 0;
      value = value << 4 | static_cast<unsigned>(at);
    }
    return value;
  }
  void fail() { ok_ = false; }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::string lost_book_text(const std::vector<LostWrites::Record>& records) {
  std::string text(kTitle);
  for (const LostWrites::Record& record : records) {
    put(text, record.file.ends.client);
    put(text, record.file.ends.server);
    text += std::to_string(record.file.ends.server_port) + ' ' +
            std::to_string(static_cast<unsigned>(record.loss.cause)) + ' ' +
            std::to_string(record.loss.near) + ' ' + (record.reader_told ? "1 " : "0 ");
    for (std::size_t i = 0; i < record.loss.ranges.size(); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(record.loss.ranges[i].begin) + '-' +
              std::to_string(record.loss.ranges[i].end);
    text += ' ';
    put(text, record.file.share);
    text += ' ';
    put(text, record.file.path);
    text += ' ';
    put(text, record.file.spelled);
    text += '\n';
  }
  return text + sum_line(text);
}

std::optional<std::vector<LostWrites::Record>> parse_lost_book(std::string_view text) {
  if (text.size() > kMostLostBookBytes || text.size() < kTitle.size() + kSumBytes ||
      (!text.starts_with(kTitle) && !text.starts_with(kTitleBefore)))
    return std::nullopt;
  const auto summed = text.substr(0, text.size() - kSumBytes);
  if (text.substr(summed.size()) != sum_line(summed)) return std::nullopt;
  std::vector<LostWrites::Record> records;
  for (auto rest = summed.substr(kTitle.size()); !rest.empty();) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos || records.size() == LostRecords::kMost) return std::nullopt;
    LineReader line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    LostWrites::Record record;
    record.file.ends.client = line.address();
    record.file.ends.server = line.address();
    record.file.ends.server_port = line.number<std::uint16_t>();
    const auto cause = line.number<unsigned>();
    record.loss.near = line.number<std::uint64_t>();
    const auto reader_told = line.number<unsigned>();
    record.loss.ranges = line.ranges();
    record.file.share = line.name();
    record.file.path = line.name();
    if (!line.at_end()) record.file.spelled = line.name();
    if (!line.at_end() || cause >= kCauseNames.size() || reader_told > 1) return std::nullopt;
    record.loss.cause = static_cast<Cause>(cause);
    record.reader_told = reader_told == 1;
    records.push_back(std::move(record));
  }
  return records;
}

std::string mark_text(const MarkLine& mark) {
  std::string text = (mark.file ? "+ " : "- ") + std::to_string(mark.number);
  if (!mark.file) return text;
  text += ' ' + std::to_string(mark.near) + ' ';
  put(text, mark.file->ends.client);
  put(text, mark.file->ends.server);
  text += std::to_string(mark.file->ends.server_port) + ' ';
  put(text, mark.file->share);
  text += ' ';
  put(text, mark.file->path);
  text += ' ';
  put(text, mark.file->spelled);
  return text;
}

std::optional<MarkLine> parse_mark(std::string_view text) {
  const bool is_end = text.starts_with("- ");
  if (!is_end && !text.starts_with("+ ")) return std::nullopt;
  LineReader line(text.substr(2));
  MarkLine mark{.number = line.number<std::uint64_t>()};
  if (!is_end) {
    mark.near = line.number<std::uint64_t>();
    LostWrites::File& file = mark.file.emplace();
    file.ends.client = line.address();
    file.ends.server = line.address();
    file.ends.server_port = line.number<std::uint16_t>();
    file.share = line.name();
    file.path = line.name();
    if (!line.at_end()) file.spelled = line.name();
  }
  if (!line.at_end()) return std::nullopt;
  return mark;
}

}  // namespace longhaul::promises
