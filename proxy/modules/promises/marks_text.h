// SPDX-License-Identifier: Apache-2.0
// The text of the file of marks: the type of the file and the number of the daemon that wrote it, then lines
// that make a mark ("+") or end one ("-"). Each line has its own checksum, so that a line torn by a power
// failure damages no other. marks.h decides which marks there are.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/modules/journal.h"
#include "proxy/modules/promises/lost_book.h"

namespace longhaul::promises {

std::string mark_line(const MarkLine& mark);

struct MarksLeft {
  std::uint64_t daemon = 0;                 // the daemon's number; zero: unreadable
  std::map<std::uint64_t, MarkLine> marks;  // marks that did not end, by number
};
// Returns nullopt if it is another file.
std::optional<MarksLeft> read_marks(std::string_view text);

// Text to be appended to the file, or to replace it because much of it is obsolete.
class MarksText {
 public:
  using Batch = modules::Journal::Batch;

  // `kept` is false if nothing is ever taken: then only counts what would be in the file.
  void keep(bool kept) { is_kept_ = kept; }
  void add(const MarkLine& mark);
  void end(const MarkLine& mark);

  // All new text.
  Batch take();
  // Whether the batch must be replaced by one with all marks that still count.
  bool must_replace() const;
  Batch replace(std::uint64_t daemon, const std::string& all_lines);
  // A batch could not be written to the file.
  void failed() { replaces_ = true; }

 private:
  bool is_kept_ = false;
  std::string new_text_;
  bool has_new_marks_ = false, replaces_ = true;
  std::size_t file_bytes_ = 0, live_bytes_ = 0;
};

}  // namespace longhaul::promises
