// SPDX-License-Identifier: Apache-2.0
// See near_aliases.h.
#include "proxy/modules/smb/smb2/near_aliases.h"

#include <algorithm>
#include <cstring>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/near_metadata.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {
namespace {

// An alias' FileId: this and a number. Servers number their opens from small numbers or at random; an id that
// is in use is skipped.
constexpr std::uint64_t kPersistentPart = 0x6C75'6168'676E'6F4Cull;

// The identity of an open: the same session, tree and name, letter by letter, because servers may be
// case-sensitive.
std::string name_of(const Header& header, const CreateRequest& request) {
  std::string name(sizeof(SessionId) + sizeof(TreeId), '\0');
  std::memcpy(name.data(), &header.session_id, sizeof(SessionId));
  std::memcpy(name.data() + sizeof(SessionId), &header.tree_id, sizeof(TreeId));
  return name.append(as_text(request.name));
}

// Queries with the same answer through every handle of a file.
bool of_the_file(const QueryInfoRequest& request) {
  if (request.type == InfoType::file_system) return true;
  return request.type == InfoType::file && request.input.empty() &&
         (is_of_the_file(request.info_class) || request.info_class == file_info::stream);
}

// The version of stored information about its attributes.
std::uint64_t version_of(const Open& open) {
  return open.group->count(&FileCounts::changes) + open.group->count(&FileCounts::doubts);
}

}  // namespace

bool only_looks(const Header& header, const CreateRequest& request) {
  constexpr std::uint32_t kAccess = access::read_attributes | access::synchronize;
  constexpr std::uint32_t kSynchronous = 0x30;  // FILE_SYNCHRONOUS_IO_ALERT and _NONALERT: no meaning here
  constexpr std::uint32_t kOptions = create_options::non_directory_file | create_options::sequential_only |
                                     create_options::random_access | create_options::open_reparse_point |
                                     kSynchronous;
  constexpr std::uint32_t kNormal = 0x80, kAnyShare = 7, kMostImpersonation = 3;
  if (header.flags & ~header_flags::priority_mask || header.channel_sequence != 0) return false;
  if (request.disposition != Disposition::open || request.options & ~kOptions) return false;
  if (request.desired_access & ~kAccess || !(request.desired_access & access::read_attributes)) return false;
  if (request.oplock != OplockLevel::none || !request.contexts.empty()) return false;
  if (request.file_attributes & ~kNormal || request.share_access > kAnyShare ||
      request.impersonation > kMostImpersonation)
    return false;
  if (request.name.empty()) return false;
  for (std::size_t i = 0; i + 2 <= request.name.size(); i += 2)
    if (load_le<char16_t>(request.name, i) == u':') return false;  // a stream
  return true;
}

bool includes(const Open& open, std::uint32_t wanted) {
  std::uint32_t granted = open.access;
  constexpr std::uint32_t kGeneric =
      access::generic_all | access::generic_read | access::generic_write | access::generic_execute;
  if (granted & kGeneric) granted |= access::synchronize;  // [MS-SMB2] 2.2.13.1.1
  return (wanted & ~granted) == 0;
}

// ---- which opens may have aliases

void NearAliases::before_request(TimePoint, const Message& message, const Changes& changes) {
  for (const Change& change : changes) {
    if (change.kind != Change::Kind::voided || aliases_.empty()) continue;
    // Its deletion would wait for this open, too; after a new SESSION_SETUP another user may use the session.
    const Command by = message.header().command;
    if (!message.single()) {
      make_real_all_of(*side_.connection().any_file());
    } else if (by == Command::set_info || by == Command::session_setup) {
      make_real_all_of(*change.file);
    }
  }
  for (const Element& element : message.elements) {
    const Pending* request = side_.connection().pending(element.header.message_id);
    const Open* open = request ? side_.connection().open(request->file) : nullptr;
    if (element.header.command == Command::close && open) make_real(open->key);
    if (element.header.command != Command::set_info) continue;
    // A directory's name and permissions apply to everything in it.
    const bool renames =
        request && (request->info_class == file_info::rename || request->info_class == file_info::rename_ex ||
                    request->info_class == file_info::link);
    if (!open || open->directory || renames) ++renames_;
  }
}

void NearAliases::make_real_all_of(const FileGroup& file) {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, alias] : aliases_) {
    const Open* open = side_.connection().open(alias.behind);
    if (!open || may_be_same_file(*open->group, file)) numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) make_real(number);
}

bool NearAliases::is_changed(const Open& open, const Known& known) const {
  return known.renames != renames_ || known.changes != version_of(open);
}

void NearAliases::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    const OpenKey& key = change.open->key;
    if (change.kind == Change::Kind::broken) make_real(key);
    if (change.kind == Change::Kind::closed) forget(key);
    if (change.kind != Change::Kind::opened || !change.open->disk_file) continue;
    const auto opening = opening_.find(change.by);
    if (opening == opening_.end()) continue;
    std::vector<OpenKey>& of_name = by_name_[opening->second];
    if (of_name.size() >= kMostOfName) continue;
    of_name.push_back(key);
    held_bytes_ += opening->second.size();
    known_.insert_or_assign(key, Known{.name = opening->second,
                                       .opened = now,
                                       .changes = version_of(*change.open),
                                       .renames = renames_,
                                       .aliases = {}});
  }
  for (const Connection::Answered& each : outcome.answered)
    if (!each.interim) opening_.erase(each.request.id);
}

Taken NearAliases::on_twin(TimePoint, const TwinMessage& message, const Slice&) {
  if (const auto* taken_back = std::get_if<smb::Break>(&message)) make_real(taken_back->open);
  return Taken::no;
}

bool NearAliases::attributes_known(TimePoint now, const Open& open, const Known& known) const {
  if (is_changed(open, known) || open.break_pending) return false;
  const auto& features = side_.surroundings().features;
  if (!features.metadata_relaxed) return attributes_guarded(open, features);
  const bool own = (open.caching & lease_state::write) && !open.on_behalf;
  return own || now - known.opened <= kSharedLife;
}

const Open* NearAliases::open_behind(TimePoint now, const std::string& name, const CreateRequest& request) {
  const auto of_name = by_name_.find(name);
  const Open* found = nullptr;
  // If the limit is reached there may be others, which may be about to delete it.
  if (of_name == by_name_.end() || of_name->second.size() >= kMostOfName) return nullptr;
  for (const OpenKey& key : of_name->second) {
    const Open* open = side_.connection().open(key);
    const auto known = known_.find(key);
    if (!open || known == known_.end() || open->options & create_options::delete_on_close) return nullptr;
    if (!(open->caching & lease_state::handle) || !(open->caching & lease_state::read) || open->closing)
      continue;
    if (open->durable || open->reconnected || open->replayed) continue;
    if (attributes_known(now, *open, known->second) && includes(*open, request.desired_access)) found = open;
  }
  return found;
}

// ---- the client's requests

Taken NearAliases::on_request(TimePoint now, const Message& message, const Changes&) {
  const Header& header = message.header();
  if (!message.single() || header.command != Command::create) return Taken::no;
  const auto request = parse_create_request(message.first().bytes);
  if (!request || request->options & create_options::open_by_file_id || request->snapshot ||
      header.flags & header_flags::dfs || request->name.size() > kMostNameBytes)
    return Taken::no;
  std::string name = name_of(header, *request);
  const bool looks = side_.surroundings().features.metadata && aliases_.size() < kMostAliases &&
                     only_looks(header, *request);
  const Open* open = looks ? open_behind(now, name, *request) : nullptr;
  if (!open) {
    if (opening_.size() < kMostOpening) opening_.insert_or_assign(header.message_id, std::move(name));
    return Taken::no;
  }
  FileId file{kPersistentPart, ++last_number_};
  while (side_.connection().open(file)) file.volatile_part = ++last_number_;
  const CreateResponse response{.action = CreateAction::opened,
                                .times = open->times,
                                .allocation_bytes = open->allocation_bytes,
                                .end_of_file = open->end_of_file,
                                .file_attributes = open->file_attributes,
                                .file = file,
                                .contexts = {}};
  known_.at(open->key).aliases.insert(last_number_);
  Alias alias{.key = key_of(header.session_id, header.tree_id, file),
              .behind = open->key,
              .create = build_create_request({}, *request).from(kFrameHeadBytes)};
  held_bytes_ += alias.create.size();
  aliases_.emplace(last_number_, std::move(alias));
  ++side_.counters().metadata_answers;
  side_.answer(now, header.message_id, build_create_response(answer_to(header, Status::success), response));
  return Taken::yes;
}

// An alias of another session or tree is unknown: the server returns the error.
NearAliases::Alias* NearAliases::find(const Element& element) {
  const auto file = named_file(element);
  if (!file || file->persistent_part != kPersistentPart) return nullptr;
  const auto alias = aliases_.find(file->volatile_part);
  if (alias == aliases_.end()) return nullptr;
  const bool inherits = element.header.is_related();
  const OpenKey key = key_of(element.header.session_id, element.header.tree_id, *file);
  return inherits || alias->second.key == key ? &alias->second : nullptr;
}

Message NearAliases::resolved(TimePoint now, Message message) {
  for (const Element& element : message.elements) {
    const Alias* alias = find(element);
    if (!alias) continue;
    const std::uint64_t number = file_of(alias->key).volatile_part;
    if (element.header.is_signed() || side_.connection().sessions().any_untouchable()) {
      side_.out().abort();  // it can be neither changed nor extended
      return message;
    }
    if (message.single() && element.header.command == Command::close) {
      const auto close = parse_close_request(element.bytes);
      const Open* open = side_.connection().open(alias->behind);
      const bool tells = close && (close->flags & kClosePostQueryAttributes);
      const auto known = known_.find(alias->behind);
      if (close && open && known != known_.end() && (!tells || attributes_known(now, *open, known->second)))
        continue;
    }
    if (message.single() && element.header.command == Command::query_info) {
      const auto query = parse_query_info_request(element.bytes);
      if (query && of_the_file(*query)) {
        EditedFrame edited(message.frame.bytes);
        edited.set_file_id(file_of(alias->behind), *file_id_at(Command::query_info));
        auto parsed = parse_message({message.frame.kind, std::move(edited).whole()});
        if (parsed) return std::move(*parsed);
      }
    }
    make_real(number);
  }
  return message;
}

Taken NearAliases::close(TimePoint now, const Message& message) {
  const Header& header = message.header();
  if (aliases_.empty() || !message.single() || header.command != Command::close) return Taken::no;
  const Alias* alias = find(message.first());
  const auto request = parse_close_request(message.first().bytes);
  const Open* open = alias ? side_.connection().open(alias->behind) : nullptr;
  if (!open || !request || side_.connection().sessions().any_untouchable()) return Taken::no;
  const std::uint64_t number = file_of(alias->key).volatile_part;
  if (const auto known = known_.find(alias->behind); known != known_.end())
    known->second.aliases.erase(number);
  held_bytes_ -= alias->create.size();
  aliases_.erase(number);
  ++side_.counters().metadata_answers;
  side_.answer(now, header.message_id,
               build_close_response(answer_to(header, Status::success), closed_as(*open, request->flags)));
  return Taken::yes;
}

// ---- the end of aliases

void NearAliases::make_real(std::uint64_t number) {
  const auto alias = aliases_.find(number);
  if (alias == aliases_.end()) return;
  if (side_.connection().sessions().any_untouchable()) side_.out().abort();
  side_.out().tell(MakeReal{.open = alias->second.key, .request = alias->second.create});
  if (const auto known = known_.find(alias->second.behind); known != known_.end())
    known->second.aliases.erase(number);
  held_bytes_ -= alias->second.create.size();
  aliases_.erase(alias);
}

void NearAliases::make_real(const OpenKey& behind) {
  const auto known = known_.find(behind);
  if (known == known_.end()) return;
  const auto aliases = std::move(known->second.aliases);
  known->second.aliases.clear();
  for (const std::uint64_t number : aliases) make_real(number);
}

// Its tree or session has ended, and the aliases with it: before a CLOSE they were opened at the server.
void NearAliases::forget(const OpenKey& behind) {
  const auto known = known_.find(behind);
  if (known == known_.end()) return;
  for (const std::uint64_t number : known->second.aliases) {
    held_bytes_ -= aliases_.at(number).create.size();
    aliases_.erase(number);
  }
  held_bytes_ -= known->second.name.size();
  if (const auto of_name = by_name_.find(known->second.name); of_name != by_name_.end()) {
    std::erase(of_name->second, behind);
    if (of_name->second.empty()) by_name_.erase(of_name);
  }
  known_.erase(known);
}

}  // namespace longhaul::smb::smb2
