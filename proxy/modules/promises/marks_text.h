// SPDX-License-Identifier: Apache-2.0
// The text of the file of marks: what it is and the number of the daemon that wrote it, then lines that make
// a mark ("+") or end one ("-"), each with a checksum of its own, so that what a power cut tore damages
// nothing else. Which marks there are is decided in marks.h.
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
  std::uint64_t daemon = 0;                 // its number; zero: not to be read
  std::map<std::uint64_t, MarkLine> marks;  // that did not end, by number
};
// None: it is another file.
std::optional<MarksLeft> read_marks(std::string_view text);

// What is to be appended to the file, or to replace it because much of it is out of date.
class MarksText {
 public:
  using Batch = modules::Journal::Batch;

  // Nothing is ever taken: only counts what would be in the file.
  void keep(bool kept) { is_kept_ = kept; }
  void add(const MarkLine& mark);
  void end(const MarkLine& mark);

  // All that is new.
  Batch take();
  // That batch is to be replaced by one with all marks that still count.
  bool must_replace() const;
  Batch replace(std::uint64_t daemon, const std::string& all_lines);
  // A batch is not in the file.
  void failed() { replaces_ = true; }

 private:
  bool is_kept_ = false;
  std::string new_text_;
  bool has_new_marks_ = false, replaces_ = true;
  std::size_t file_bytes_ = 0, live_bytes_ = 0;
};

}  // namespace longhaul::promises
