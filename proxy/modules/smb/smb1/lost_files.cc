// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/lost_files.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {
namespace {

// One of several names ([MS-CIFS] 2.2.4.7.1, 2.2.4.8.1), each behind its format, Unicode at an even place of
// the message. Takes it, with its end, from what is left; none: it is not there, or stands for several files.
std::optional<FileName> take_name(const Header& header, const Block& block, std::size_t& at) {
  constexpr std::uint8_t kText = 4;
  if (at >= block.bytes.size() || u8_at(block.bytes, at) != kText) return std::nullopt;
  ++at;
  if (header.is_unicode() && (block.bytes_at + at) % 2) ++at;
  if (at > block.bytes.size()) return std::nullopt;
  FileName name = file_name(header.tid, block.bytes.subspan(at), header.is_unicode());
  if (name.stream || name.path.empty() || name.path.find_first_of(u"*?<>\"") != std::u16string::npos)
    return std::nullopt;
  const std::size_t width = header.is_unicode() ? 2 : 1;
  const auto is_end = [&] { return width == 2 ? u16_at(block.bytes, at) == 0 : u8_at(block.bytes, at) == 0; };
  while (at + width <= block.bytes.size() && !is_end()) at += width;
  at += width;
  return name;
}

// [MS-CIFS] 2.2.4.41.1: a Unicode name begins at an even place of the message.
Bytes padded_name(const Block& block, const Header& header) {
  return block.bytes.subspan(header.is_unicode() && block.bytes_at % 2 && !block.bytes.empty() ? 1 : 0);
}

}  // namespace

std::optional<std::u16string> share_connected_by(const Message& request) {
  for (const Block& block : request.blocks) {
    if (block.command != Command::tree_connect_andx) continue;
    if (const auto connect = parse_tree_connect_request(block, request.header))
      return share_of(file_name(0, connect->path, request.header.is_unicode()).path);
  }
  return std::nullopt;
}

std::optional<Wanted> wanted_by(const Message& message) {
  const Block& block = message.first();
  const Header& header = message.header;
  const auto named = [&](Bytes name) { return file_name(header.tid, name, header.is_unicode()); };
  if (block.command == Command::nt_create_andx) {
    const auto request = parse_nt_create_request(block, header);
    if (!request || request->root_fid != 0) return std::nullopt;
    return Wanted{named(request->name), smb::use_of(request->access, request->disposition)};
  }
  if (block.command == Command::open_andx) {
    const auto request = parse_open_request(block);
    if (!request) return std::nullopt;
    // OpenMode: 0 fails where there is a file, 2 truncates it.
    const auto use = (request->mode & 3) != 1 ? LostWrites::Use::replaces
                     : request->writes()      ? LostWrites::Use::writes
                                              : LostWrites::Use::reads;
    return Wanted{named(padded_name(block, header)), use};
  }
  if (block.command == Command::rename || block.command == Command::nt_rename) {
    std::size_t at = 0;
    if (auto name = take_name(header, block, at)) return Wanted{std::move(*name), LostWrites::Use::writes};
  }
  return std::nullopt;
}

bool LostFiles::is_renaming() const {
  return asked_.size() >= kMostAsked ||
         std::ranges::any_of(asked_, [](const auto& each) { return each.second.to.has_value(); });
}

std::optional<LostFiles::Change> LostFiles::change_of(const Message& request) {
  const Block& block = request.first();
  const bool renames = block.command == Command::rename;
  if (request.is_chained() || (!renames && block.command != Command::remove)) return std::nullopt;
  std::size_t at = 0;
  auto name = take_name(request.header, block, at);
  if (!name) return std::nullopt;
  Change change{.name = std::move(*name)};
  if (renames && !(change.to = take_name(request.header, block, at))) return std::nullopt;
  return change;
}

void LostFiles::on_request(const Message& request) {
  if (auto share = share_connected_by(request))
    shares_.connecting(number_of(request.header), std::move(*share));
  if (asked_.size() >= kMostAsked) return;
  if (auto change = change_of(request))
    asked_.insert_or_assign(number_of(request.header), std::move(*change));
}

void LostFiles::on_reply(const Message& reply) {
  if (reply.header.status == 0)
    shares_.connected(number_of(reply.header), 0, reply.header.tid);
  else
    shares_.refused(number_of(reply.header));
  const auto asked = asked_.extract(number_of(reply.header));
  if (asked.empty() || reply.header.status != 0) return;
  const Change& change = asked.mapped();
  if (change.to)
    lost_.moved(of(change.name), of(*change.to));
  else
    lost_.forget(of(change.name));
}

}  // namespace longhaul::smb::smb1
