// SPDX-License-Identifier: Apache-2.0
// What arrives; leg_out.cc has what is sent.
#include "proxy/modules/smb/seal/leg.h"

#include <cstring>

#include "codecs/little_endian.h"

namespace longhaul::smb::seal {

using smb2::Header;

void Leg::passes(const Frame& frame) {
  if (to_ == To::client) return used_.note(frame);
  if (frame.kind != FrameKind::smb2 || !protection_.awaits_answers()) return;
  const auto elements = smb2::parse_elements(frame.message());
  if (!elements) return;
  for (const smb2::Element& element : *elements) protection_.answer_passes(element.header);
}

Result<Frame> Leg::open(const Frame& frame) {
  if (empty()) {
    passes(frame);
    return frame;
  }
  Frame opened{FrameKind::smb2, {}};
  std::byte* memory = nullptr;
  smb2::SessionId outer = 0;
  const bool encrypted = frame.kind == FrameKind::smb2_transform;
  if (encrypted) {
    const auto transform = smb2::parse_transform_header(frame.message());
    Session* const session = transform ? protection_.find(transform->session_id) : nullptr;
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
    if (names_none && has(id)) return Error::forged;
    std::byte* const at = memory + kFrameHeadBytes + element.offset;
    std::uint32_t flags = header.flags;
    const smb2::SessionId used = encrypted ? outer : id;
    Session* const session = protection_.find(used);
    Form form = encrypted ? Form::encrypted : Form::plain;
    bool is_as_it_came = !session;
    if (session && header.is_signed() && !encrypted) {
      if (session->signer.verify(element.bytes.first(smb2::kHeaderBytes), element.body()))
        form = Form::with_signature;
      else if (to_ == To::server && Protection::says_ended(header))
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
    if (const auto noted = arrived(header, used, form); !noted) return noted.error();
    // An answer of a session without keys must not be taken for one of ours, which is protected like its
    // request. A request of a login stays as it is: it belongs to what both sides hash.
    if (session || to_ == To::server) flags |= flags_of(form);
    store_le(at + smb2::header_at::flags, flags);
  }
  return opened;
}

Result<void> Leg::arrived(const Header& header, smb2::SessionId session, Form form) {
  if (to_ == To::server) return protection_.answer_arrived(header, session, form);
  if (!header.is_response())
    if (const auto used = used_.use(header); !used) return used;
  return protection_.request_arrived(header, session, form);
}

}  // namespace longhaul::smb::seal
