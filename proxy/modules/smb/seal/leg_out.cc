// SPDX-License-Identifier: Apache-2.0
// What a leg sends; see leg.h.
#include <algorithm>
#include <cstring>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/seal/leg.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::seal {

using smb2::Command;
using smb2::Header;

namespace {

constexpr std::size_t kFrontBytes = kFrameHeadBytes + smb2::kHeaderBytes;
constexpr std::size_t kJoinedBytes = 2048;

// Messages of which more than the header is read here.
bool is_read(std::uint16_t command) {
  return command == std::uint16_t(Command::session_setup) || command == std::uint16_t(Command::tree_connect);
}

// Beside sessions with keys: packets of the NetBIOS session service, and transforms of other sessions.
bool may_pass(Bytes front) {
  constexpr std::uint32_t kTransform = 0x424D53FD;
  if (front[0] != std::byte{0}) return true;
  return front.size() >= kFrameHeadBytes + 4 && load_le<std::uint32_t>(front, kFrameHeadBytes) == kTransform;
}

Slice joined(const std::vector<Slice>& pieces, std::size_t size, std::byte*& memory) {
  Slice all = Slice::unfilled(size, memory);
  std::byte* end = memory;
  for (const Slice& piece : pieces) end = std::copy(piece.bytes().begin(), piece.bytes().end(), end);
  return all;
}

}  // namespace

Result<void> Leg::seal(Slice bytes, std::vector<Slice>& out) {
  gathered_.push(std::move(bytes));
  while (auto frame = gathered_.next())
    if (auto sealed = seal_frame(std::move(frame->pieces), frame->size, out); !sealed) return sealed;
  return {};
}

Result<void> Leg::seal_frame(std::vector<Slice> pieces, std::size_t size, std::vector<Slice>& out) {
  const auto pass = [&]() -> Result<void> {
    for (Slice& piece : pieces) out.push_back(std::move(piece));
    return {};
  };
  std::byte* memory = split_front(pieces, std::min(size, kFrontBytes));
  const std::byte* const first = memory + kFrameHeadBytes;
  if (size < kFrontBytes || load_le<std::uint32_t>({first, smb2::kHeaderBytes}, 0) != smb2::kProtocolId) {
    const Bytes front(memory, std::min(size, kFrontBytes));
    if (!sessions_.empty() && !may_pass(front)) return Error::unprotected;
    if (to_ == To::server && front.size() > kFrameHeadBytes) note_stranger(front.subspan(kFrameHeadBytes));
    return pass();
  }
  const Bytes first_header(first, smb2::kHeaderBytes);
  const std::uint32_t next = load_le<std::uint32_t>(first_header, smb2::header_at::next_command);
  if (next != 0 || size <= kJoinedBytes ||
      is_read(load_le<std::uint16_t>(first_header, smb2::header_at::command)))
    pieces = {joined(pieces, size, memory)};

  // Of a compound, its elements with their padding; of anything else, its header and the pieces behind.
  struct Part {
    std::byte* at;
    Header header;
    Request wanted;
  };
  std::vector<Part> parts;
  const auto note = [&](std::byte* at, const Header& header, smb2::SessionId session) -> Result<void> {
    Result<Request> wanted =
        to_ == To::server ? form_of_request(header, session) : form_of_answer(header, session);
    if (!wanted) return wanted.error();
    // What names no session of ours is encrypted with the one whose transform it arrived in.
    if (wanted->form == Form::encrypted && !find(wanted->session))
      wanted->session = load_le<std::uint64_t>({at, smb2::kHeaderBytes}, smb2::header_at::signature);
    parts.push_back({at, header, *wanted});
    return to_ == To::server ? expect_answer(header, *wanted) : Result<void>();
  };
  smb2::Elements elements;
  if (pieces.size() == 1) {
    auto parsed = smb2::parse_elements(pieces.front().bytes().subspan(kFrameHeadBytes));
    if (!parsed) return sessions_.empty() ? pass() : parsed.error();
    elements = std::move(*parsed);
    smb2::SessionId session = 0;
    for (const smb2::Element& element : elements) {
      if (!element.header.is_related() || element.header.session_id != smb2::kPreviousSession)
        session = element.header.session_id;
      auto noted = note(memory + kFrameHeadBytes + element.offset, element.header, session);
      if (noted && to_ == To::client) noted = learn(element);
      if (!noted) return noted;
    }
  } else {
    const auto header = smb2::parse_header(first_header);
    if (!header) return sessions_.empty() ? pass() : header.error();
    if (const auto noted = note(memory + kFrameHeadBytes, *header, header->session_id); !noted) return noted;
  }

  for (const Part& part : parts) {
    const Form form = form_in(part.header.arrival);
    // Its session has ended meanwhile: it does not leave with less.
    if (const Session* session = find(part.wanted.session);
        form != Form::plain && (!session || (form == Form::encrypted && !session->out)))
      return Error::unprotected;
    store_le(part.at + smb2::header_at::flags, part.header.flags);
    if (form != Form::plain) std::memset(part.at + smb2::header_at::signature, 0, sizeof(Signature));
  }
  const auto end_sessions = [&] {
    for (const Part& part : parts)
      if (to_ == To::client && ends_session(part.header)) end(part.header.session_id);
  };
  std::vector<Bytes> rest;
  for (std::size_t i = 1; i < pieces.size(); ++i) rest.push_back(pieces[i].bytes());

  // Elements of one message are encrypted together (3.1.4.3).
  const auto encrypted = std::find_if(parts.begin(), parts.end(),
                                      [](const Part& part) { return part.wanted.form == Form::encrypted; });
  if (encrypted != parts.end()) {
    Session* const session = find(encrypted->wanted.session);
    if (session && session->out) {
      rest.insert(rest.begin(), pieces.front().bytes().subspan(kFrameHeadBytes));
      out.push_back(session->out->seal(encrypted->wanted.session, rest, size - kFrameHeadBytes));
      end_sessions();
      return {};
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    Session* const session = find(part.wanted.session);
    if (part.wanted.form != Form::with_signature || !session) continue;
    store_le(part.at + smb2::header_at::flags, part.header.flags | smb2::header_flags::is_signed);
    const Bytes body = elements.empty() ? Bytes() : elements[i].body();
    const Signature signature = session->signer.sign({part.at, smb2::kHeaderBytes},
                                                     elements.empty() ? rest : std::vector<Bytes>{body});
    std::copy(signature.begin(), signature.end(), part.at + smb2::header_at::signature);
  }
  end_sessions();
  return pass();
}

// A request of ours is protected like the client's last one of the same tree.
Result<Leg::Request> Leg::form_of_request(const Header& header, smb2::SessionId id) {
  Session* const session = find(id);
  if (!session) return Request{id, form_in(header.arrival)};
  Form form = session->latest;
  const TreeKey key{id, header.tree_id};
  if (header.arrival & arrival_flags::arrived) {
    form = form_in(header.arrival);
    if (header.command != Command::cancel && header.command != Command::session_setup) {
      session->latest = form;
      if (!header.is_async()) {
        if (!trees_.contains(key) && trees_.size() >= kMostTrees) return Error::unprotected;
        trees_[key].latest = form;
      }
    }
  } else if (const auto tree = trees_.find(key); tree != trees_.end()) {
    form = tree->second.latest;
  }
  if (header.command == Command::tree_disconnect) trees_.erase(key);
  return Request{id, form};
}

// Also for sessions without keys: any other number is in no answer of the server.
Result<void> Leg::expect_answer(const Header& request, const Request& sent) {
  if (request.command == Command::cancel || request.is_response()) return {};
  if (requests_.size() >= kMostRequests) return sessions_.empty() ? Result<void>() : Error::unprotected;
  requests_[request.message_id] = sent;
  return {};
}

// An answer of the server keeps its form; one that was made here has that of its request.
Leg::Request Leg::form_of_answer(const Header& header, smb2::SessionId id) {
  Request wanted{id, Form::plain};
  const auto request = requests_.find(header.message_id);
  if (header.arrival & arrival_flags::arrived) {
    wanted.form = form_in(header.arrival);
  } else if (request != requests_.end()) {
    wanted = request->second;
  }
  if (request != requests_.end() && !header.is_interim()) requests_.erase(request);
  return wanted;
}

// 3.3.5.5.3, 3.3.5.7: what must be encrypted from now on. Servers give a tree's number to another one later.
Result<void> Leg::learn(const smb2::Element& answer) {
  const Header& header = answer.header;
  if (header.status != Status::success) return {};
  Session* const session = find(header.session_id);
  if (!session) return {};
  const TreeKey tree{header.session_id, header.tree_id};
  if (header.command == Command::session_setup) {
    const auto setup = smb2::parse_session_setup_response(answer.bytes);
    if (setup && setup->flags & smb2::session_flags::encrypt_data) session->least = Form::encrypted;
  } else if (header.command == Command::tree_connect) {
    trees_.erase(tree);
    const auto connect = smb2::parse_tree_connect_response(answer.bytes);
    if (!connect || !(connect->flags & smb2::share_flags::encrypt_data)) return {};
    if (trees_.size() >= kMostTrees) return Error::unprotected;
    trees_[tree].least = Form::encrypted;
  } else if (header.command == Command::tree_disconnect) {
    trees_.erase(tree);
  }
  return {};
}

}  // namespace longhaul::smb::seal
