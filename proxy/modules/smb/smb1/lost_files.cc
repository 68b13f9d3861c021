// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/lost_files.h"

#include <utility>

#include "codecs/work.h"
#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {
namespace {

// Takes one of several names ([MS-CIFS] 2.2.4.7.1, 2.2.4.8.1), each after its format byte; Unicode is at an
// even offset of the message. Returns nullopt if there is none, or if it stands for several files.
std::optional<FileName> take_name(const Header& header, const Block& block, std::size_t& at) {
  constexpr std::uint8_t kText = 4;
  if (at >= block.bytes.size() || u8_at(block.bytes, at) != kText) return std::nullopt;
  ++at;
  if (header.is_unicode() && (block.bytes_at + at) % 2) ++at;
  if (at > block.bytes.size()) return std::nullopt;
  FileName name = file_name(header, block.bytes.subspan(at));
  if (name.stream || name.path.empty() || name.path.find_first_of(u"*?<>\"") != std::u16string::npos)
    return std::nullopt;
  const std::size_t width = header.is_unicode() ? 2 : 1;
  const auto is_end = [&] { return width == 2 ? u16_at(block.bytes, at) == 0 : u8_at(block.bytes, at) == 0; };
  while (at + width <= block.bytes.size() && !is_end()) at += width;
  at += width;
  return name;
}

// [MS-CIFS] 2.2.4.41.1: a Unicode name begins at an even offset of the message.
Bytes padded_name(const Block& block, const Header& header) {
  return block.bytes.subspan(header.is_unicode() && block.bytes_at % 2 && !block.bytes.empty() ? 1 : 0);
}

// [MS-CIFS] 2.2.4.4, 2.2.4.16: an existing file is truncated, or the request fails.
bool makes_empty(const Block& block) {
  return block.command == Command::create || block.command == Command::create_new;
}

// [MS-CIFS] 2.2.4.66.1: not a link.
bool renames(const Block& block) {
  constexpr std::uint16_t kRenameFile = 0x104;
  return block.command == Command::rename ||
         (block.command == Command::nt_rename && block.words.size() >= 4 &&
          u16_at(block.words, 2) == kRenameFile);
}

}  // namespace

std::optional<std::u16string> share_connected_by(const Message& request) {
  for (const Block& block : request.blocks) {
    if (block.command == Command::tree_connect) {
      std::size_t at = 0;
      if (const auto path = take_name(request.header, block, at)) return share_of(path->path);
    }
    if (block.command != Command::tree_connect_andx) continue;
    if (const auto connect = parse_tree_connect_request(block, request.header))
      return share_of(file_name(0, connect->path, request.header.is_unicode()).path);
  }
  return std::nullopt;
}

// [MS-CIFS] 2.2.4.50.2: in the older request's response the tree is in the words.
std::uint16_t tree_connected_by(const Message& reply) {
  const Block& block = reply.first();
  const bool in_words = block.command == Command::tree_connect && block.words.size() >= 4;
  return in_words ? u16_at(block.words, 2) : reply.header.tid;
}

std::optional<Wanted> wanted_by(const Message& message) {
  const Block& block = message.first();
  const Header& header = message.header;
  const auto wanted = [&](Bytes name, LostWrites::Use use) -> std::optional<Wanted> {
    Wanted file{file_name(header, name), use};
    if (file.name.stream) return std::nullopt;
    return file;
  };
  if (block.command == Command::nt_create_andx) {
    const auto request = parse_nt_create_request(block, header);
    if (!request || request->root_fid != 0) return std::nullopt;
    return wanted(request->name, smb::use_of(request->access, request->disposition));
  }
  if (block.command == Command::open_andx) {
    const auto request = parse_open_request(block);
    if (!request) return std::nullopt;
    // OpenMode: 0 fails if there is a file, 2 truncates it.
    const auto use = (request->mode & 3) != 1 ? LostWrites::Use::replaces
                     : request->writes()      ? LostWrites::Use::writes
                                              : LostWrites::Use::reads;
    return wanted(padded_name(block, header), use);
  }
  if (block.command == Command::open && block.words.size() >= 2) {
    const unsigned access = u16_at(block.words, 0) & 7;  // [MS-CIFS] 2.2.4.3.1: 1 writes, 2 both
    const auto use = access == 1 || access == 2 ? LostWrites::Use::writes : LostWrites::Use::reads;
    std::size_t at = 0;
    if (auto name = take_name(header, block, at)) return Wanted{std::move(*name), use};
  }
  if (makes_empty(block)) {
    std::size_t at = 0;
    if (auto name = take_name(header, block, at)) return Wanted{std::move(*name), LostWrites::Use::replaces};
  }
  if (block.command == Command::rename || block.command == Command::nt_rename) {
    std::size_t at = 0;
    if (auto name = take_name(header, block, at)) return Wanted{std::move(*name), LostWrites::Use::writes};
  }
  return std::nullopt;
}

void LostFiles::moved(const LostWrites::File& from, const LostWrites::File& to) {
  count_work(connection_.opens().all().size() * kWorkPerName);
  for (auto& [fid, open] : connection_.opens().all()) {
    if (!may_be_in(open.moved_to.empty() ? open.name.spelled : open.moved_to, from.path)) continue;
    if (auto name = name_after(of(open), from, to))
      open.moved_to = name->spelled.empty() ? name->path : name->spelled;
  }
}

std::optional<LostFiles::Change> LostFiles::change_of(const Message& request) {
  const Block& block = request.first();
  const bool is_rename = renames(block);
  if (request.is_chained() || (!is_rename && !makes_empty(block) && block.command != Command::remove))
    return std::nullopt;
  std::size_t at = 0;
  auto name = take_name(request.header, block, at);
  if (!name) return std::nullopt;
  Change change{.name = std::move(*name)};
  if (is_rename && !(change.to = take_name(request.header, block, at))) return std::nullopt;
  return change;
}

void LostFiles::on_request(const Message& request) {
  if (auto share = share_connected_by(request))
    shares_.connecting(number_of(request.header), std::move(*share));
  auto change = change_of(request);
  if (!change) return;
  if (asked_.size() >= kMostAsked) {
    if (!untracked_) untracked_ = lost_.live().begin_rename(ends_);
    return;
  }
  if (change->to) change->under_way = lost_.live().begin_rename(ends_);
  asked_.insert_or_assign(number_of(request.header), std::move(*change));
}

void LostFiles::on_reply(const Message& reply) {
  if (reply.header.status == 0)
    shares_.connected(number_of(reply.header), 0, tree_connected_by(reply));
  else
    shares_.refused(number_of(reply.header));
  const auto asked = asked_.extract(number_of(reply.header));
  if (reply.header.status == 0 && reply.header.command == Command::tree_disconnect)
    shares_.disconnected(0, reply.header.tid);
  if (asked.empty() || reply.header.status != 0) return;
  const Change& change = asked.mapped();
  if (change.to)
    lost_.moved(of(change.name), of(*change.to));
  else
    lost_.forget(of(change.name));
}

}  // namespace longhaul::smb::smb1
