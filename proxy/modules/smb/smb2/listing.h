// SPDX-License-Identifier: Apache-2.0
// The entries of a directory's listing on their way from the server's answers to the client's questions,
// which may want them in other portions ([MS-FSCC] section 2.4: each entry begins with the offset of the next
// one). Which listing they belong to, and how long they are good, is known elsewhere.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/records_query.h"

namespace longhaul::smb::smb2 {

// Classes whose entries take_directory_entry() can part.
bool lists(std::uint8_t info_class);

struct ListingEntry {
  Slice bytes;       // shares the answer's memory; its offset of the next entry says nothing any more
  std::string name;  // its bytes, UTF-16LE
};
// All entries of an answer's buffer; an error if they are not understood to the end.
Result<std::vector<ListingEntry>> parse_listing(std::uint8_t info_class, const Slice& buffer);

class ListingQueue {
 public:
  void add(Slice entry);
  void clear();
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

  // The next entries, as many as `most_bytes` hold, one at most if `single`. Empty although there are
  // entries: the first does not fit.
  struct Part {
    Buffer buffer;
    std::size_t entries = 0;
  };
  Part take(std::uint32_t most_bytes, bool single);

 private:
  std::deque<Slice> entries_;
  std::size_t bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
