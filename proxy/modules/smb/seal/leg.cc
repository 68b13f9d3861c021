// SPDX-License-Identifier: Apache-2.0
// What arrives; leg_out.cc has what is sent.
#include "proxy/modules/smb/seal/leg.h"

#include <cstring>

#include "codecs/little_endian.h"

namespace longhaul::smb::seal {

using smb2::Command;
using smb2::Header;

namespace {

constexpr std::size_t kSessionBytes = 2048, kEntryBytes = 96;

// Servers cannot sign for a session that is gone. Samba's answer has the request's own signature then: it
// counts as unsigned, and passes as it is. The client judges it, as it would without the pair.
bool says_ended(const Header& answer) { return answer.is_response() && says_expired(answer.status); }

// And they answer a login before they know its key.
bool may_be_weaker(const Header& answer) {
  return answer.is_interim() || says_ended(answer) ||
         (answer.command == Command::session_setup && answer.status != Status::success);
}

}  // namespace

Leg::Session::Session(const Agreement& agreement, const SessionKeys& keys, To to)
    : signer(agreement.signing, keys.signing),
      least(agreement.must_sign ? Form::with_signature : Form::plain),
      latest(least) {
  if (agreement.cipher == Cipher::none) return;
  const bool client = to == To::client;
  in.emplace(agreement.cipher, client ? keys.to_server : keys.to_client);
  out.emplace(agreement.cipher, client ? keys.to_client : keys.to_server);
}

bool Leg::begin(smb2::SessionId session, const Agreement& agreement, const SessionKeys& keys) {
  sessions_.erase(session);
  if (sessions_.size() >= kMostSessions) return false;
  sessions_.try_emplace(session, agreement, keys, to_);
  return true;
}

void Leg::end(smb2::SessionId session) {
  sessions_.erase(session);
  trees_.erase(trees_.lower_bound({session, 0}), trees_.upper_bound({session, ~smb2::TreeId{0}}));
}

// 3.2.5.4: its answer is the last message with the session's key.
bool Leg::ends_session(const Header& answer) {
  return answer.command == Command::logoff && answer.is_response() && answer.status == Status::success;
}

Leg::Session* Leg::find(smb2::SessionId session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

void Leg::passes(const Frame& frame) {
  if (to_ == To::client) return used_.note(frame);
  if (frame.kind != FrameKind::smb2 || requests_.empty()) return;
  const auto elements = smb2::parse_elements(frame.message());
  if (!elements) return;
  for (const smb2::Element& element : *elements)
    if (element.header.is_response() && !element.header.is_interim())
      requests_.erase(element.header.message_id);
}

Result<Frame> Leg::open(const Frame& frame) {
  if (sessions_.empty()) {
    passes(frame);
    return frame;
  }
  Frame opened{FrameKind::smb2, {}};
  std::byte* memory = nullptr;
  smb2::SessionId outer = 0;
  const bool encrypted = frame.kind == FrameKind::smb2_transform;
  if (encrypted) {
    const auto transform = smb2::parse_transform_header(frame.message());
    Session* const session = transform ? find(transform->session_id) : nullptr;
    if (!session) return frame;
    if (!session->in) return Error::forged;
    auto plain = session->in->open(frame.message(), memory);
    if (!plain || plain->size() < kFrameHeadBytes + smb2::kHeaderBytes ||
        load_le<std::uint32_t>(plain->bytes(), kFrameHeadBytes) != smb2::kProtocolId)
      return Error::forged;
    outer = transform->session_id;
    opened.bytes = std::move(*plain);
  } else if (frame.kind == FrameKind::smb2) {
    opened.bytes = Slice::unfilled(frame.bytes.size(), memory);
    std::memcpy(memory, frame.bytes.bytes().data(), frame.bytes.size());
  } else if (is_session_packet(frame.kind)) {
    return frame;
  } else {
    return Error::unprotected;  // compressed outside a transform, or SMB1
  }

  const auto elements = smb2::parse_elements(opened.message());
  if (!elements) return elements.error();
  smb2::SessionId id = 0;
  for (const smb2::Element& element : *elements) {
    const Header& header = element.header;
    if (!header.is_related() || header.session_id != smb2::kPreviousSession) id = header.session_id;
    // 3.3.5.2.1.1, 3.2.5.1.1.1: a session's messages come in its own transform. Notifications of the server
    // name none, and what a number means that is nobody's is for the receiver to say.
    const bool names_none = encrypted && id != outer;
    if (names_none && find(id)) return Error::forged;
    std::byte* const at = memory + kFrameHeadBytes + element.offset;
    std::uint32_t flags = header.flags;
    const smb2::SessionId used = encrypted ? outer : id;
    Session* const session = find(used);
    Form form = encrypted ? Form::encrypted : Form::plain;
    bool is_as_it_came = !session;
    if (session && header.is_signed() && !encrypted) {
      if (session->signer.verify(element.bytes.first(smb2::kHeaderBytes), element.body()))
        form = Form::with_signature;
      else if (to_ == To::server && says_ended(header))
        is_as_it_came = true;
      else
        return Error::forged;
    }
    if (!is_as_it_came) {
      flags &= ~smb2::header_flags::is_signed;
      std::memset(at + smb2::header_at::signature, 0, sizeof(Signature));
      // The other leg needs it.
      if (names_none) store_le(at + smb2::header_at::signature, outer);
    }
    const auto noted = to_ == To::client ? note_request(header, used, form) : note_answer(header, used, form);
    if (!noted) return noted.error();
    // An answer of a session without keys must not be taken for one of ours, which is protected like its
    // request. A request of a login stays as it is: it belongs to what both sides hash.
    if (session || to_ == To::server) flags |= flags_of(form);
    store_le(at + smb2::header_at::flags, flags);
  }
  return opened;
}

Result<void> Leg::note_request(const Header& header, smb2::SessionId session, Form form) {
  if (!header.is_response())
    if (const auto used = used_.use(header); !used) return used;
  const auto known = sessions_.find(session);
  if (known == sessions_.end()) return {};
  if (header.is_response()) return Error::forged;
  // The server decides about these, which nothing here answers.
  if (header.command == Command::session_setup || header.command == Command::cancel) return {};
  Form least = known->second.least;
  if (const auto tree = trees_.find({session, header.tree_id}); !header.is_async() && tree != trees_.end())
    least = std::max(least, tree->second.least);
  if (form < least) return Error::unprotected;
  if (requests_.size() >= kMostRequests) return Error::unprotected;
  requests_[header.message_id] = {session, form};
  return {};
}

// The request decides how its answer must be protected, and with whose keys: not the session that the answer
// names. A copy of an earlier answer has a valid signature, but the number of no request that the server has.
Result<void> Leg::note_answer(const Header& header, smb2::SessionId session, Form form) {
  if (!header.is_response()) return find(session) ? Result<void>(Error::forged) : Result<void>();
  if (header.is_unsolicited()) return {};
  const auto request = requests_.find(header.message_id);
  if (request == requests_.end()) return tells_stranger(header, form) ? Result<void>() : Error::forged;
  const Request asked = request->second;
  if (form < asked.form && !may_be_weaker(header)) return Error::unprotected;
  // 3.3.5.5.3: the last answer to a login has the keys of the session that it begins.
  const bool begins = header.command == Command::session_setup && !find(asked.session);
  if (form > Form::plain && session != asked.session && !begins) return Error::forged;
  if (!header.is_interim()) requests_.erase(request);
  if (ends_session(header)) end(asked.session);
  return {};
}

// 3.3.5.2.9: a server that does not know the session on this connection cannot encrypt its refusal. The
// client judges it, as it would without the pair: nothing here is added to it, and none of our requests has
// its number.
bool Leg::tells_stranger(const Header& answer, Form form) const {
  return form == Form::plain && says_expired(answer.status) && !sessions_.contains(answer.session_id) &&
         strangers_.contains(answer.session_id);
}

void Leg::note_stranger(Bytes transform) {
  const auto header = smb2::parse_transform_header(transform);
  if (header && strangers_.size() < kMostSessions) strangers_.insert(header->session_id);
}

std::size_t Leg::state_bytes() const {
  return sessions_.size() * kSessionBytes +
         (trees_.size() + requests_.size() + strangers_.size()) * kEntryBytes + used_.state_bytes();
}

}  // namespace longhaul::smb::seal
