// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/open.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/lost_names.h"

namespace longhaul::smb::smb2 {
namespace {

// [MS-SMB2] 2.2.13.1.1: the meaning of generic rights, as far as needed here.
std::uint32_t without_generic_rights(std::uint32_t wanted) {
  if (wanted & access::generic_all)
    wanted |= access::generic_read | access::generic_write | access::generic_execute;
  if (wanted & access::generic_read) wanted |= access::read_data | access::read_ea | access::read_attributes;
  if (wanted & access::generic_write)
    wanted |= access::write_data | access::append_data | access::write_attributes;
  if (wanted & access::generic_execute) wanted |= access::execute | access::read_attributes;
  return wanted;
}

}  // namespace

bool Open::may_read() const { return access & (access::read_data | access::execute); }
bool Open::may_write() const { return access & access::write_data; }
bool Open::write_through() const {
  return options & (create_options::write_through | create_options::no_intermediate_buffering);
}

bool Open::truncates() const {
  return disposition == Disposition::supersede || disposition == Disposition::overwrite ||
         disposition == Disposition::overwrite_if;
}

void Open::requested(const CreateRequest& create, const Header& header) {
  name = file_name_of(tree, create, header);
  dfs = header.flags & header_flags::dfs;
  unnamed = create.options & create_options::open_by_file_id || names_stream(name_in(create));
  access = without_generic_rights(create.desired_access);
  options = create.options;
  share_access = create.share_access;
  disposition = create.disposition;
  may_be_replayed = create.durable == Durable::request_v2;
  reconnected = create.durable == Durable::reconnect || create.durable == Durable::reconnect_v2;
  // A reconnected handle was named on another connection.
  if (reconnected) {
    name.exact = false;
  } else {
    spelled = spelled_path_of(create, header);
  }
}

void Open::granted(const CreateResponse& answer, const Tree* share) {
  constexpr std::uint32_t kNotPlain = file_attributes::directory | file_attributes::reparse_point |
                                      file_attributes::offline | file_attributes::recall_on_data_access;
  file = answer.file;
  key = key_of(session, tree, file);
  end_of_file = confirmed_bytes = answer.end_of_file;
  allocation_bytes = answer.allocation_bytes;
  file_attributes = answer.file_attributes;
  times = answer.times;
  durable = answer.durable || answer.persistent;
  outlasts_breaks = answer.persistent;
  directory = answer.file_attributes & file_attributes::directory;
  disk_file = share && share->type == ShareType::disk && !(answer.file_attributes & kNotPlain);
  oplock = answer.oplock;
  caching = answer.caching();
}

void Open::broken(OplockLevel to) {
  // 3.3.4.6: a broken level II needs no acknowledgement. Judged by what the server granted: `caching` may
  // have been returned meanwhile, without the server's knowledge.
  break_pending = caching_of(oplock) & lease_state::write;
  // If it was requested on the client's behalf, the rest is a shared oplock, which the client did not request
  // either (far_oplocks.cc).
  caching = on_behalf ? +lease_state::none : caching & caching_of(to);
  oplock = to;
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
