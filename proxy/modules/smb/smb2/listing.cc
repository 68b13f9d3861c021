// SPDX-License-Identifier: Apache-2.0
// See listing.h.
#include "proxy/modules/smb/smb2/listing.h"

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

// [MS-FSCC] 2.4: entries begin at multiples of eight.
constexpr std::size_t kAlignment = 8;
constexpr std::size_t padding_behind(std::size_t bytes) {
  return (kAlignment - bytes % kAlignment) % kAlignment;
}

}  // namespace

bool lists(std::uint8_t info_class) {
  switch (info_class) {
    case file_info::directory:
    case file_info::full_directory:
    case file_info::both_directory:
    case file_info::names:
    case file_info::id_both_directory:
    case file_info::id_full_directory:
      return true;
    default:
      return false;
  }
}

std::optional<QueryDirectoryRequest> query_with_open(const Message& message) {
  if (message.elements.size() != 2) return std::nullopt;
  const Element &create = message.elements[0], &query = message.elements[1];
  if (create.header.command != Command::create || query.header.command != Command::query_directory ||
      !query.header.is_related())
    return std::nullopt;
  const auto request = parse_query_directory_request(query.bytes);
  if (!request || !lists(request->info_class) || request->flags & query_directory_flags::index_specified)
    return std::nullopt;
  return *request;
}

Result<std::vector<ListingEntry>> parse_listing(std::uint8_t info_class, const Slice& buffer) {
  std::vector<ListingEntry> entries;
  Bytes rest = buffer.bytes();
  while (!rest.empty()) {
    const std::size_t begin = buffer.size() - rest.size();
    const auto entry = take_directory_entry(info_class, rest);
    if (!entry) return entry.error();
    if (!*entry) break;
    entries.push_back({.bytes = buffer.sub(begin, buffer.size() - rest.size() - begin),
                       .name = std::string(as_text((*entry)->name))});
  }
  return entries;
}

void ListingQueue::add(Slice entry) {
  bytes_ += entry.size();
  entries_.push_back(std::move(entry));
}

void ListingQueue::clear() {
  entries_.clear();
  bytes_ = 0;
}

ListingQueue::Part ListingQueue::take(std::uint32_t most_bytes, bool single) {
  Part part;
  std::size_t last = 0;
  while (!entries_.empty() && !(single && part.entries == 1)) {
    const Slice& entry = entries_.front();
    const std::size_t padding = padding_behind(part.buffer.size());
    if (part.buffer.size() + padding + entry.size() > most_bytes) break;
    part.buffer.insert(part.buffer.end(), padding, std::byte{0});
    if (part.entries != 0) {
      store_le(part.buffer.data() + last, static_cast<std::uint32_t>(part.buffer.size() - last));
    }
    last = part.buffer.size();
    append(part.buffer, entry.bytes());
    store_le(part.buffer.data() + last, std::uint32_t{0});
    ++part.entries;
    bytes_ -= entry.size();
    entries_.pop_front();
  }
  return part;
}

}  // namespace longhaul::smb::smb2
