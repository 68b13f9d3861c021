// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/open.h"

#include <algorithm>

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {

bool Open::may_read() const { return access & (access::read_data | access::execute); }
bool Open::may_write() const { return access & access::write_data; }
bool Open::write_through() const {
  return options & (create_options::write_through | create_options::no_intermediate_buffering);
}

void Open::confirm(std::uint64_t offset, std::uint32_t length) {
  if (offset <= ~std::uint64_t{0} - length) confirmed_bytes = std::max(confirmed_bytes, offset + length);
}

std::uint32_t caching_of(OplockLevel level) {
  switch (level) {
    case OplockLevel::level_ii:
      return lease_state::read;
    case OplockLevel::exclusive:
      return lease_state::read | lease_state::write;
    case OplockLevel::batch:
      return lease_state::read | lease_state::write | lease_state::handle;
    default:
      return lease_state::none;
  }
}

OpenKey key_of(SessionId session, TreeId tree, const FileId& file) {
  OpenKey key{.session = session, .tree = tree};
  store_le(key.id.data(), file.persistent_part);
  store_le(key.id.data() + 8, file.volatile_part);
  return key;
}

FileId file_of(const OpenKey& key) {
  return {load_le<std::uint64_t>(key.id, 0), load_le<std::uint64_t>(key.id, 8)};
}

FileName file_name_of(TreeId tree, const CreateRequest& request, const Header& header) {
  FileName name{.tree = tree};
  if (request.options & create_options::open_by_file_id || header.flags & header_flags::dfs)
    name.exact = false;
  for (std::size_t i = 0; i + 2 <= request.name.size(); i += 2) {
    auto letter = load_le<char16_t>(request.name, i);
    if (letter == u':') break;  // a stream of the file
    if (name.path.size() == FileName::kMostLetters) {
      name.exact = false;
      break;
    }
    if (letter == u'~') name.exact = false;
    if (letter >= u'a' && letter <= u'z') letter = static_cast<char16_t>(letter - u'a' + u'A');
    name.path.push_back(letter);
  }
  while (!name.path.empty() && name.path.back() == u'\\') name.path.pop_back();
  return name;
}

std::u16string spelled_path_of(const CreateRequest& request, const Header& header) {
  std::u16string path;
  if (request.options & create_options::open_by_file_id || header.flags & header_flags::dfs ||
      request.name.size() > FileName::kMostLetters * sizeof(char16_t))
    return path;
  for (std::size_t i = 0; i + 2 <= request.name.size(); i += 2) {
    const auto letter = load_le<char16_t>(request.name, i);
    if (letter == u':') break;
    path.push_back(letter);
  }
  return path;
}

std::u16string name_in(const CreateRequest& request) {
  std::u16string name;
  for (std::size_t i = 0; i + 2 <= request.name.size() && name.size() < FileName::kMostLetters; i += 2)
    name.push_back(load_le<char16_t>(request.name, i));
  return name;
}

}  // namespace longhaul::smb::smb2
