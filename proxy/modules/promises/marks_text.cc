// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/marks_text.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

namespace longhaul::promises {
namespace {

constexpr std::string_view kMarksTitle = "longhaul promised-files 2 ";
constexpr std::string_view kMarksTitleBefore = "longhaul promised-files 1 ";  // names are not spelled
static_assert(kMarksTitle.size() == kMarksTitleBefore.size());
constexpr std::size_t kSumDigits = 16;
// The file is rewritten once this much of it is obsolete.
constexpr std::size_t kLeastWaste = 64 << 10;

std::string sum_of(std::string_view text) {
  char digits[kSumDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return digits;
}

std::string with_sum(std::string text) {
  text += ' ';
  const std::string sum = sum_of(text);
  return std::move(text) + sum + '\n';
}

// The next line without its checksum; empty if it is damaged.
std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.size() <= kSumDigits) return {};
  const auto summed = line.substr(0, line.size() - kSumDigits);
  if (line.substr(summed.size()) != sum_of(summed)) return {};
  return summed.substr(0, summed.size() - 1);
}

}  // namespace

std::string mark_line(const MarkLine& mark) { return with_sum(mark_text(mark)); }

std::optional<MarksLeft> read_marks(std::string_view text) {
  const std::string_view title = next_line(text);
  if (!title.starts_with(kMarksTitle) && !title.starts_with(kMarksTitleBefore)) return std::nullopt;
  MarksLeft left;
  while (!text.empty()) {
    const auto found = parse_mark(next_line(text));
    if (!found) continue;
    // All of them: the end of a mark comes after other lines, and a mark that moved to another name later
    // still.
    if (!found->file)
      left.marks.erase(found->number);
    else
      left.marks.emplace(found->number, *found);
  }
  const auto digits = title.substr(kMarksTitle.size());
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), left.daemon);
  return left;
}

void MarksText::add(const MarkLine& mark) {
  const std::string text = mark_line(mark);
  live_bytes_ += text.size();
  if (!is_kept_) return;
  new_text_ += text;
  has_new_marks_ = true;
}

void MarksText::end(const MarkLine& mark) {
  live_bytes_ -= mark_line(mark).size();
  if (is_kept_) new_text_ += mark_line({.number = mark.number});
}

MarksText::Batch MarksText::take() {
  Batch batch{.text = std::exchange(new_text_, {}), .durable = std::exchange(has_new_marks_, false)};
  file_bytes_ += batch.text.size();
  return batch;
}

bool MarksText::must_replace() const { return replaces_ || file_bytes_ > kLeastWaste + 2 * live_bytes_; }

MarksText::Batch MarksText::replace(std::uint64_t daemon, const std::string& all_lines) {
  replaces_ = false;
  Batch batch{.text = with_sum(std::string(kMarksTitle) + std::to_string(daemon)) + all_lines,
              .place = Batch::Place::instead,
              .durable = true};
  file_bytes_ = batch.text.size();
  return batch;
}

}  // namespace longhaul::promises
