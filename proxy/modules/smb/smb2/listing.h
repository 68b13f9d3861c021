// SPDX-License-Identifier: Apache-2.0
// The entries of a directory's listing between the server's responses and the client's queries, which may
// request them in other portions ([MS-FSCC] section 2.4: each entry begins with the offset of the next one).
// The owner knows their listing and how long they are valid.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/message.h"

namespace longhaul::smb::smb2 {

// Classes whose entries take_directory_entry() can separate.
bool lists(std::uint8_t info_class);

// The query of a compound that opens a directory and lists it from its beginning.
std::optional<QueryDirectoryRequest> query_with_open(const Message& message);

struct ListingEntry {
  Slice bytes;       // shares the response's memory; its offset of the next entry is no longer valid
  std::string name;  // its bytes, UTF-16LE
};
// All entries in a response's buffer; an error if they cannot be parsed to the end.
Result<std::vector<ListingEntry>> parse_listing(std::uint8_t info_class, const Slice& buffer);

class ListingQueue {
 public:
  void add(Slice entry);
  void clear();
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

  // The next entries, as many as fit into `most_bytes`, at most one if `single`. Empty although there are
  // entries: the first one does not fit.
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
