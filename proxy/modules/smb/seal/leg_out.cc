// SPDX-License-Identifier: Apache-2.0
// What a leg sends; see leg.h.
#include <algorithm>
#include <cstring>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/seal/leg.h"

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
    if (!empty() && !may_pass(front)) return Error::unprotected;
    if (to_ == To::server && front.size() > kFrameHeadBytes)
      protection_.encrypted_passes(front.subspan(kFrameHeadBytes));
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
    Protection::Sent wanted;
  };
  std::vector<Part> parts;
  const auto note = [&](std::byte* at, const Header& header, smb2::SessionId session) -> Result<void> {
    const auto outer = load_le<std::uint64_t>({at, smb2::kHeaderBytes}, smb2::header_at::signature);
    const Result<Protection::Sent> wanted = to_ == To::server
                                                ? protection_.request_sent(header, session, outer)
                                                : protection_.answer_sent(header, session, outer);
    if (!wanted) return wanted.error();
    parts.push_back({at, header, *wanted});
    return {};
  };
  smb2::Elements elements;
  if (pieces.size() == 1) {
    auto parsed = smb2::parse_elements(pieces.front().bytes().subspan(kFrameHeadBytes));
    if (!parsed) return empty() ? pass() : parsed.error();
    elements = std::move(*parsed);
    smb2::SessionId session = 0;
    for (const smb2::Element& element : elements) {
      if (!element.header.is_related() || element.header.session_id != smb2::kPreviousSession)
        session = element.header.session_id;
      auto noted = note(memory + kFrameHeadBytes + element.offset, element.header, session);
      if (noted && to_ == To::client) noted = protection_.learn(element);
      if (!noted) return noted;
    }
  } else {
    const auto header = smb2::parse_header(first_header);
    if (!header) return empty() ? pass() : header.error();
    if (const auto noted = note(memory + kFrameHeadBytes, *header, header->session_id); !noted) return noted;
  }

  for (const Part& part : parts) {
    const Form form = form_in(part.header.arrival);
    // Its session has ended meanwhile: it does not leave with less.
    if (const Session* session = protection_.find(part.wanted.session);
        form != Form::plain && (!session || (form == Form::encrypted && !session->out)))
      return Error::unprotected;
    store_le(part.at + smb2::header_at::flags, part.header.flags);
    if (form != Form::plain) std::memset(part.at + smb2::header_at::signature, 0, sizeof(Signature));
  }
  const auto end_sessions = [&] {
    for (const Part& part : parts)
      if (to_ == To::client && Protection::ends_session(part.header)) end(part.header.session_id);
  };
  std::vector<Bytes> rest;
  for (std::size_t i = 1; i < pieces.size(); ++i) rest.push_back(pieces[i].bytes());

  // Elements of one message are encrypted together (3.1.4.3).
  const auto encrypted = std::find_if(parts.begin(), parts.end(),
                                      [](const Part& part) { return part.wanted.form == Form::encrypted; });
  if (encrypted != parts.end()) {
    Session* const session = protection_.find(encrypted->wanted.session);
    if (session && session->out) {
      rest.insert(rest.begin(), pieces.front().bytes().subspan(kFrameHeadBytes));
      out.push_back(session->out->seal(encrypted->wanted.session, rest, size - kFrameHeadBytes));
      end_sessions();
      return {};
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    Session* const session = protection_.find(part.wanted.session);
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

}  // namespace longhaul::smb::seal
