// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/smb1_sealing.h"

#include <algorithm>

#include "crypto/secret_slice.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::seal {

namespace {

constexpr std::size_t kShortestKey = 16, kLongestKey = 32;
constexpr std::uint32_t kNumberOfLogin = 1;  // of the answer

bool is_empty(Bytes signature) {
  return std::all_of(signature.begin(), signature.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

bool NearSmb1Sealing::takes(const TwinMessage& message, Outputs& out) {
  const auto* given = std::get_if<SealKeys>(&message);
  if (!given) return false;
  const std::size_t size = given->signing_key.size();
  if (given->dialect != kDialectOfSmb1 || !leg_.empty() || size < kShortestKey || size > kLongestKey) {
    out.abort();
    return true;
  }
  leg_.begin(MessageNumber{given->session}, given->signing_key.bytes());
  wipe(given->signing_key);
  detail_ = printable(as_text(given->detail.bytes()));
  return true;
}

Frame FarSmb1Sealing::from_stream(const Frame& frame) {
  const auto message = leg_.empty() ? smb1::parse_message(frame.message()) : Error::malformed_header;
  if (!message || message->header.command != smb1::Command::session_setup_andx) return frame;
  const auto setup = smb1::parse_session_setup_request(message->first());
  // [MS-CIFS] 2.2.4.53.1: a login begins without a UID, which is in the server's first response.
  if (message->header.uid == 0 || !login_) login_.emplace(keys_);
  if (setup && setup->security) login_->from_client(*setup->security);
  return frame;
}

std::optional<Frame> FarSmb1Sealing::from_lan(TimePoint now, const Frame& frame, Outputs& out) {
  if (leg_.empty() && login_ && frame.kind == FrameKind::smb1) {
    const auto message = smb1::parse_message(frame.message());
    if (message && message->header.is_reply() && message->header.command == smb1::Command::session_setup_andx) {
      const auto setup = smb1::parse_session_setup_reply(message->first());
      if (setup) login_->from_server(setup->security);
      // Guests have no key, and their messages are not signed.
      if (message->header.status == 0 && !(setup && setup->is_guest)) logged_in(frame, message->header, out);
    }
  }
  return LegSealing::from_lan(now, frame, out);
}

void FarSmb1Sealing::logged_in(const Frame& frame, const smb1::Header& answer, Outputs& out) {
  const bool is_signed = !is_empty(frame.message().subspan(smb1_at::signature, sizeof(Smb1Signature)));
  const Found* const found = login_->found();
  if (is_signed && !found) cannot_open(login_->missing(), out);
  if (is_signed && found && !begin(frame, answer, out))
    cannot_open({.reason = reasons::smb_wrong_key, .detail = {}}, out);
  login_.reset();
}

// The server proves by its response which key it has: that of the login, or, as some do with a long key, its
// beginning.
bool FarSmb1Sealing::begin(const Frame& frame, const smb1::Header& answer, Outputs& out) {
  const Found& found = *login_->found();
  for (const std::size_t size : {found.key.size(), kShortestKey}) {
    if (size < kShortestKey || size > kLongestKey || size > found.key.size()) continue;
    const Bytes key = Bytes(found.key).first(size);
    if (!Smb1Signer(key).verify(kNumberOfLogin, frame.message())) continue;
    const MessageNumber request = smb1::number_of(answer);
    leg_.begin(request, key);
    detail_ = "SMB 1, MD5; " + text_of(found);
    out.tell(SealKeys{.session = request.number(),
                      .dialect = kDialectOfSmb1,
                      .must_sign = true,
                      .signing_key = secret_slice(key),
                      .detail = Slice::copy_of(as_bytes(detail_))});
    return true;
  }
  return false;
}

void FarSmb1Sealing::cannot_open(const Missing& missing, Outputs& out) {
  detail_ = missing.detail;
  half_.cannot_open(missing.reason);
  out.tell(unsealed_for(missing.reason));
}

}  // namespace longhaul::smb::seal
