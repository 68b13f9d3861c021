// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/lost_files.h"

#include <algorithm>
#include <utility>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/records_query.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kRenameHeadBytes = 20, kMostNameBytes = 8192, kMostUncBytes = 2048;
constexpr std::uint8_t kDispositionEx = 64;  // FileDispositionInformationEx
constexpr std::uint8_t kLinkEx = 72;         // FileLinkInformationEx

}  // namespace

LostWrites::Use use_of(const Open& open) {
  return smb::use_of(open.access, static_cast<std::uint32_t>(open.disposition));
}

// [MS-FSCC] 2.4.37, 2.4.21 and their later forms.
bool gives_name(const Element& request) {
  if (request.header.command != Command::set_info) return false;
  const auto set = parse_set_info_request(request.bytes);
  return set && set->type == InfoType::file &&
         (set->info_class == file_info::rename || set->info_class == file_info::rename_ex ||
          set->info_class == file_info::link || set->info_class == kLinkEx);
}

bool gives_name_to_opened(std::span<const Element> behind) {
  for (const Element& element : behind) {
    if (!element.header.is_related() || element.header.command == Command::create) return false;
    if (gives_name(element) && parse_set_info_request(element.bytes)->file == kPreviousFile) return true;
  }
  return false;
}

Slice loss_error(const Header& request, const Pending& tracked) {
  Header answer = answer_to(request, Status::lost_writebehind_data);
  answer.session_id = tracked.session;
  answer.tree_id = tracked.tree;
  return build_error_response(answer);
}

std::optional<std::u16string> share_connected_by(const Element& request) {
  const auto connect = parse_tree_connect_request(request.bytes);
  if (!connect) return std::nullopt;
  const Bytes path = connect->path.first(std::min(connect->path.size(), kMostUncBytes));
  std::u16string unc;
  for (std::size_t i = 0; i + 2 <= path.size(); i += 2) unc.push_back(load_le<char16_t>(path, i));
  return share_of(unc);
}

// [MS-FSCC] 2.4.37 and 2.4.11 and their later forms, 2.4.13, 2.4.4.
std::optional<LostFiles::Change> LostFiles::change_of(const Element& element) {
  using Kind = Change::Kind;
  const auto request = parse_set_info_request(element.bytes);
  if (!request || request->type != InfoType::file) return std::nullopt;
  const Bytes buffer = request->buffer;
  switch (request->info_class) {
    case file_info::rename:
    case file_info::rename_ex: {
      if (buffer.size() < kRenameHeadBytes) return std::nullopt;
      const std::size_t length = load_le<std::uint32_t>(buffer, 16);
      if (length > kMostNameBytes || length > buffer.size() - kRenameHeadBytes) return std::nullopt;
      Change change{.kind = Kind::renamed};
      for (std::size_t at = kRenameHeadBytes; at + 2 <= kRenameHeadBytes + length; at += 2)
        change.path.push_back(load_le<char16_t>(buffer, at));
      change.path = path_of(change.path);
      return change;
    }
    case file_info::disposition:
    case kDispositionEx:
      if (buffer.empty()) return std::nullopt;
      return Change{.kind = (buffer.front() & std::byte{1}) != std::byte{} ? Kind::deletes : Kind::keeps};
    case file_info::end_of_file:
    case file_info::allocation:
      if (buffer.size() < 8 || load_le<std::uint64_t>(buffer, 0) != 0) return std::nullopt;
      return Change{.kind = Kind::emptied};
    default:
      return std::nullopt;
  }
}

void LostFiles::on_request(const Message& message) {
  for (const Element& element : message.elements) {
    if (element.header.command == Command::tree_connect)
      if (auto share = share_connected_by(element))
        shares_.connecting(element.header.message_id, std::move(*share));
    if (element.header.command != Command::set_info || asked_.size() >= kMostAsked) continue;
    if (auto change = change_of(element))
      asked_.insert_or_assign(element.header.message_id, std::move(*change));
  }
}

void LostFiles::on_outcome(const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::tree_connect) continue;
    if (each.element)
      shares_.connected(each.request.id, each.request.session, each.element->header.tree_id);
    else
      shares_.refused(each.request.id);
  }
}

void LostFiles::on_done(Connection& connection, const Connection::Outcome& outcome) {
  using Kind = Change::Kind;
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::set_info) continue;
    auto asked = asked_.extract(each.request.id);
    Open* open = connection.open(each.request.file);
    if (asked.empty() || !open || !each.element || each.element->header.status != Status::success) continue;
    Change& change = asked.mapped();
    if (change.kind == Kind::renamed) {
      const LostWrites::File before = of(*open);
      connection.moved(*open, std::move(change.path));
      lost_.moved(before, of(*open));
    } else if (change.kind == Kind::emptied) {
      lost_.forget(of(*open));
    } else {
      open->deletes = change.kind == Kind::deletes;
    }
  }
  for (const smb2::Change& change : outcome.changes) {
    if (change.kind == smb2::Change::Kind::opened) {
      change.open->deletes = (change.open->options & create_options::delete_on_close) != 0;
      if (use_of(*change.open) == LostWrites::Use::replaces) lost_.forget(of(*change.open));
    } else if (change.kind == smb2::Change::Kind::closed && change.open->deletes) {
      lost_.forget(of(*change.open));
    }
  }
}

std::vector<GoesOn> LostFiles::gone_on_with(const Message& message, Connection& connection) const {
  std::vector<GoesOn> all;
  SessionId session = 0;
  TreeId tree = 0;
  std::optional<std::u16string> share;  // of a TREE_CONNECT before it in its compound
  for (std::size_t i = 0; i < message.elements.size(); ++i) {
    const Element& element = message.elements[i];
    // 3.3.5.2.7.2: what a related element takes from the one before.
    if (!element.header.is_related()) {
      session = element.header.session_id, tree = element.header.tree_id;
      share.reset();
    }
    if (element.header.command == Command::tree_connect && !message.single()) {
      share = share_connected_by(element);
    } else if (element.header.command == Command::create) {
      const auto request = parse_create_request(element.bytes);
      if (!request || request->options & create_options::open_by_file_id) continue;
      auto use = smb::use_of(request->desired_access, static_cast<std::uint32_t>(request->disposition));
      const std::span<const Element> elements(message.elements.data(), message.elements.size());
      if (use != LostWrites::Use::replaces && gives_name_to_opened(elements.subspan(i + 1)))
        use = LostWrites::Use::writes;
      if (use == LostWrites::Use::attributes) continue;
      GoesOn opens{of(session, tree, file_name_of(tree, *request, element.header).path), use};
      if (share) opens.file.share = *share;
      all.push_back(std::move(opens));
    } else if (gives_name(element)) {
      if (const Open* open = connection.open(parse_set_info_request(element.bytes)->file))
        all.push_back({of(*open), LostWrites::Use::writes});
    }
  }
  return all;
}

bool LostFiles::is_renaming() const {
  return asked_.size() >= kMostAsked || std::ranges::any_of(asked_, [](const auto& each) {
           return each.second.kind == Change::Kind::renamed;
         });
}

LostWrites::File LostFiles::of(const Open& open) const {
  return of(open.session, open.tree, open.moved_to.empty() ? open.name.path : open.moved_to);
}

LostWrites::File LostFiles::of(SessionId session, TreeId tree, std::u16string_view path) const {
  return {.ends = ends_, .share = shares_.of(session, tree), .path = path_of(path)};
}

}  // namespace longhaul::smb::smb2
