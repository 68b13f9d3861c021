// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/open_guard.h"

#include <algorithm>

#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/connection.h"
#include "proxy/modules/smb/smb2/lost_files.h"

namespace longhaul::smb::smb2 {
namespace {

// Limit of responses to be changed; the later requests of an open in its compound are not counted.
constexpr std::size_t kMostOwed = 1024, kMostOpened = 1024;

bool is_reconnect(const CreateRequest& request) {
  return request.durable == Durable::reconnect || request.durable == Durable::reconnect_v2;
}

bool has_signature(const Element& element) { return element.header.is_signed(); }

}  // namespace

// 3.3.5.2.7.2: what a related element inherits from the previous one.
struct OpenGuard::Chain {
  SessionId session = 0;
  TreeId tree = 0;
  std::optional<std::u16string> share;  // of a TREE_CONNECT in it, whose tree id is unknown yet
  bool refused = false;                 // its CREATE is
  bool is_signed = false;               // the message, with all its chains
};

bool OpenGuard::request(const Frame& frame, Out& out) {
  const auto elements = parse_elements(frame.message());
  if (!elements) return false;
  CompoundParts passing;
  bool whole = true;
  const auto pass = [&] {
    if (!passing.empty()) out.to_server.push_back(build_compound(passing));
    passing.clear();
  };
  Chain chain{.is_signed = std::any_of(elements->begin(), elements->end(), has_signature)};
  for (std::size_t i = 0; i < elements->size(); ++i) {
    const Element& element = (*elements)[i];
    if (judge(Elements(elements->data(), elements->size()).subspan(i), chain) == Verdict::passes) {
      passing.push_back({element.header, element.body()});
      continue;
    }
    // A signed message can be parsed, but neither split nor answered.
    if (chain.is_signed) return tell_by_reset(out);
    whole = false;
    pass();
    // A CANCEL has no response and takes no id.
    const auto owed = owed_.find(element.header.message_id);
    if (owed != owed_.end() && element.header.command != Command::cancel)
      out.to_server.push_back(build_echo_request(head_of(owed->second.request)));
  }
  if (whole)
    out.to_server.push_back(frame.bytes);
  else
    pass();
  return true;
}

// The reset reports the losses found in this message so far.
bool OpenGuard::tell_by_reset(Out& out) {
  for (const auto& [id, owed] : owed_)
    if (owed.verdict == Verdict::refused && owed.file) telling_.told_by_reset(*owed.file);
  out.reset = true;
  return true;
}

OpenGuard::Verdict OpenGuard::judge(Elements elements, Chain& chain) {
  const Element& element = elements.front();
  const Header& header = element.header;
  if (!header.is_related())
    chain = {.session = header.session_id, .tree = header.tree_id, .is_signed = chain.is_signed};
  if (chain.refused) {
    if (header.command != Command::cancel) owe(element, chain, {.verdict = Verdict::refused});
    return Verdict::refused;
  }
  if (header.command == Command::tree_connect) {
    if (auto share = share_connected_by(element)) {
      shares_.connecting(number_of(header.message_id), *share);
      chain.share = std::move(share);
    }
  }
  if (header.command == Command::create) {
    const Verdict verdict = judge_create(elements, chain);
    chain.refused = verdict == Verdict::refused;
    return verdict;
  }
  if (gives_name(element)) return judge_new_name(element, chain);
  if (header.command == Command::close)
    if (const auto close = parse_close_request(element.bytes)) opened_.erase(close->file);
  return Verdict::passes;
}

OpenGuard::Verdict OpenGuard::judge_create(Elements elements, const Chain& chain) {
  using Use = LostWrites::Use;
  const Element& element = elements.front();
  const auto request = parse_create_request(element.bytes);
  // A handle that outlives its connection never has promises.
  if (!request || is_reconnect(*request)) return Verdict::passes;
  std::u16string share = chain.share ? *chain.share : shares_.of(chain.session, chain.tree);
  if (share.empty() || owed_.size() >= kMostOwed) return Verdict::passes;
  auto file = file_opened_by(*request, element.header, ends_, std::move(share));
  if (!file) return Verdict::passes;
  Owed owed{.use = smb::use_of(request->desired_access, static_cast<std::uint32_t>(request->disposition))};
  if (owed.use != Use::replaces && gives_name_to_opened(elements.subspan(1))) owed.use = Use::writes;
  owed.file = std::move(file);
  telling_.end_live(*owed.file);
  if (!telling_.has(*owed.file, Use::writes) || is_being_told(*owed.file)) return Verdict::passes;
  // Others pass, and are remembered: they may rename the file.
  if (owed.use != Use::replaces && telling_.has(*owed.file, owed.use)) owed.verdict = Verdict::refused;
  const Verdict verdict = owed.verdict;
  owe(element, chain, std::move(owed));
  return verdict;
}

OpenGuard::Verdict OpenGuard::judge_new_name(const Element& element, const Chain& chain) {
  const auto opened = opened_.find(parse_set_info_request(element.bytes)->file);
  if (opened == opened_.end() || owed_.size() >= kMostOwed) return Verdict::passes;
  const LostWrites::File& file = opened->second;
  if (!telling_.has(file, LostWrites::Use::writes) || is_being_told(file)) return Verdict::passes;
  owe(element, chain, {.verdict = Verdict::refused, .file = file, .use = LostWrites::Use::writes});
  return Verdict::refused;
}

void OpenGuard::owe(const Element& element, const Chain& chain, Owed owed) {
  owed.request = element.header;
  owed.request.session_id = chain.session;
  owed.request.tree_id = chain.tree;
  owed_.try_emplace(element.header.message_id, std::move(owed));
}

// Of several concurrent opens, one receives the report.
bool OpenGuard::is_being_told(const LostWrites::File& file) const {
  return std::ranges::any_of(owed_, [&](const auto& each) {
    return each.second.verdict == Verdict::refused && each.second.file == file;
  });
}

bool OpenGuard::answer(const Frame& frame, Out& out) {
  const auto elements = parse_elements(frame.message());
  if (!elements) return false;
  CompoundParts parts;
  bool changed = false;
  for (const Element& element : *elements) {
    const Header& header = element.header;
    parts.push_back({header, element.body()});
    if (!header.is_response() || header.is_unsolicited() || header.is_interim()) continue;
    learn_share(element);
    const auto owed = owed_.extract(header.message_id);
    if (owed.empty()) continue;
    if (owed.mapped().verdict == Verdict::refused) {
      changed = true;
      parts.back() = settled(element, owed.mapped());
    } else if (header.status == Status::success) {
      learn_opened(element, owed.mapped());
    }
  }
  out.to_client.push_back(changed ? build_compound(parts) : frame.bytes);
  return true;
}

void OpenGuard::learn_opened(const Element& answer, const Owed& owed) {
  if (owed.use == LostWrites::Use::replaces) return telling_.replaced(*owed.file);
  const auto opened = parse_create_response(answer.bytes);
  if (opened && opened_.size() < kMostOpened) opened_.insert_or_assign(opened->file, *owed.file);
}

// If the server refuses even an ECHO the session has ended, and its error remains: the client renews the
// session and retries; otherwise its program would never be informed of the loss.
CompoundPart OpenGuard::settled(const Element& answer, const Owed& owed) {
  Header header = answer.header;
  header.command = owed.request.command;
  header.session_id = owed.request.session_id;
  header.tree_id = owed.request.tree_id;
  header.flags &= ~header_flags::is_signed;
  if (!is_error(header.status)) {
    header.status = Status::lost_writebehind_data;
    if (owed.file) telling_.told(*owed.file, owed.use);
  }
  return {header, error_body()};
}

void OpenGuard::learn_share(const Element& answer) {
  const Header& header = answer.header;
  if (header.command != Command::tree_connect) return;
  if (header.status == Status::success)
    shares_.connected(number_of(header.message_id), header.session_id, header.tree_id);
  else
    shares_.refused(number_of(header.message_id));
}

}  // namespace longhaul::smb::smb2
