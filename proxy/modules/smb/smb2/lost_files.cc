// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/lost_files.h"

#include <algorithm>
#include <utility>

#include "codecs/little_endian.h"
#include "codecs/work.h"
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

std::optional<LostWrites::File> file_opened_by(const CreateRequest& request, const Header& header,
                                               const LostWrites::Ends& ends, std::u16string share) {
  const std::u16string name = name_in(request);
  if (request.options & create_options::open_by_file_id || names_stream(name)) return std::nullopt;
  return file_named(ends, std::move(share), name,
                    header.flags & header_flags::dfs ? NameForm::dfs : NameForm::plain);
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
      if (names_stream(change.path)) return std::nullopt;  // the content becomes a stream of the same file
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
        shares_.connecting(number_of(element.header.message_id), std::move(*share));
    if (element.header.command != Command::set_info) continue;
    auto change = change_of(element);
    if (!change) continue;
    const std::size_t bytes = change->path.size() * sizeof(char16_t);
    if (asked_.size() >= kMostAsked || asked_bytes_ + bytes > kMostAskedBytes) {
      if (!untracked_) untracked_ = lost_.live().begin_rename(ends_);
      continue;
    }
    if (change->kind == Change::Kind::renamed) change->under_way = lost_.live().begin_rename(ends_);
    if (asked_.try_emplace(element.header.message_id, std::move(*change)).second) asked_bytes_ += bytes;
  }
}

void LostFiles::on_outcome(const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::tree_connect) continue;
    if (each.element && each.element->header.status == Status::success)
      shares_.connected(number_of(each.request.id), each.request.session, each.element->header.tree_id);
    else
      shares_.refused(number_of(each.request.id));
  }
}

void LostFiles::on_done(Connection& connection, const Connection::Outcome& outcome) {
  using Kind = Change::Kind;
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::set_info) continue;
    auto asked = asked_.extract(each.request.id);
    if (!asked.empty()) asked_bytes_ -= asked.mapped().path.size() * sizeof(char16_t);
    Open* open = connection.open(each.request.file);
    // Closed by the same message: a compound.
    for (const auto& closed : outcome.closed)
      if (!open && closed->key == key_of(each.request.session, each.request.tree, each.request.file))
        open = closed.get();
    if (asked.empty() || !open || open->unnamed || !each.element ||
        each.element->header.status != Status::success)
      continue;
    Change& change = asked.mapped();
    if (change.kind == Kind::renamed) {
      const LostWrites::File before = of(*open);
      if (connection.open(each.request.file))
        connection.moved(*open, std::move(change.path));
      else
        open->moved_to = std::move(change.path);
      lost_.moved(before, of(*open));
    } else if (change.kind == Kind::emptied) {
      lost_.forget(of(*open));
    } else {
      open->deletes = change.kind == Kind::deletes;
    }
  }
  for (const smb2::Change& change : outcome.changes) {
    if (!change.open || change.open->unnamed) continue;
    if (change.kind == smb2::Change::Kind::opened) {
      change.open->deletes = (change.open->options & create_options::delete_on_close) != 0;
      if (use_of(*change.open) == LostWrites::Use::replaces) lost_.forget(of(*change.open));
    } else if (change.kind == smb2::Change::Kind::closed && change.open->deletes) {
      lost_.forget(of(*change.open));
    }
  }
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || !each.element || each.element->header.status != Status::success) continue;
    if (each.request.command == Command::tree_disconnect)
      shares_.disconnected(each.request.session, each.request.tree);
    if (each.request.command == Command::logoff) shares_.logged_off(each.request.session);
  }
}

std::vector<GoesOn> LostFiles::gone_on_with(const Message& message, Connection& connection) const {
  std::vector<GoesOn> all;
  SessionId session = 0;
  TreeId tree = 0;
  std::optional<std::u16string> share;  // of a TREE_CONNECT before it in its compound
  for (std::size_t i = 0; i < message.elements.size(); ++i) {
    const Element& element = message.elements[i];
    // 3.3.5.2.7.2: what a related element inherits from the previous one.
    if (!element.header.is_related()) {
      session = element.header.session_id, tree = element.header.tree_id;
      share.reset();
    }
    if (element.header.command == Command::tree_connect && !message.single()) {
      share = share_connected_by(element);
    } else if (element.header.command == Command::create) {
      const auto request = parse_create_request(element.bytes);
      if (!request) continue;
      auto use = smb::use_of(request->desired_access, static_cast<std::uint32_t>(request->disposition));
      auto reach = LostWrites::Reach::itself;
      const std::span<const Element> elements(message.elements.data(), message.elements.size());
      if (use != LostWrites::Use::replaces && gives_name_to_opened(elements.subspan(i + 1)))
        use = LostWrites::Use::writes, reach = LostWrites::Reach::below;
      if (use == LostWrites::Use::attributes) continue;
      if (auto file =
              file_opened_by(*request, element.header, ends_, share ? *share : shares_.of(session, tree)))
        all.push_back({std::move(*file), use, reach});
    } else if (gives_name(element)) {
      if (const Open* open = connection.open(parse_set_info_request(element.bytes)->file);
          open && !open->unnamed)
        all.push_back({of(*open), LostWrites::Use::writes, LostWrites::Reach::below});
    }
  }
  return all;
}

void LostFiles::moved(const LostWrites::File& from, const LostWrites::File& to) {
  Connection& connection = connection_();
  count_work(connection.opens().size() * kWorkPerName);
  for (const auto& [id, open] : connection.opens()) {
    if (!may_be_in(name_of(*open), from.path)) continue;
    if (auto name = name_after(of(*open), from, to))
      connection.moved(*open, name->spelled.empty() ? name->path : name->spelled);
  }
}

std::u16string_view LostFiles::name_of(const Open& open) {
  return !open.moved_to.empty() ? open.moved_to : !open.spelled.empty() ? open.spelled : open.name.path;
}

LostWrites::File LostFiles::of(const Open& open) const {
  std::u16string share = shares_.of(open.session, open.tree);
  if (!open.moved_to.empty()) return file_named(ends_, std::move(share), open.moved_to);
  if (!open.spelled.empty()) return file_named(ends_, std::move(share), open.spelled);
  LostWrites::File file =
      file_named(ends_, std::move(share), open.name.path, open.dfs ? NameForm::dfs : NameForm::plain);
  file.spelled.clear();
  return file;
}

}  // namespace longhaul::smb::smb2
