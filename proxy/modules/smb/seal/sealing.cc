// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/sealing.h"

#include <algorithm>

#include "crypto/secret_slice.h"

namespace longhaul::smb::seal {
namespace {

std::string_view name_of(smb2::Dialect dialect) {
  switch (dialect) {
    case smb2::Dialect::smb_2_0_2:
      return "2.0.2";
    case smb2::Dialect::smb_2_1:
      return "2.1";
    case smb2::Dialect::smb_3_0:
      return "3.0";
    case smb2::Dialect::smb_3_0_2:
      return "3.0.2";
    default:
      return "3.1.1";
  }
}

std::string_view name_of_signing(Signing signing) {
  return signing == Signing::aes_gmac   ? "AES-GMAC"
         : signing == Signing::aes_cmac ? "AES-CMAC"
                                        : "HMAC-SHA256";
}

std::string_view name_of_cipher(Cipher cipher) {
  constexpr std::string_view kNames[] = {"no encryption", "AES-128-CCM", "AES-128-GCM", "AES-256-CCM",
                                         "AES-256-GCM"};
  return kNames[static_cast<std::size_t>(cipher)];
}

// "SMB 3.1.1, AES-GMAC, AES-128-GCM; key from ..."
std::string detail_of(const Agreement& agreement, const Found& found) {
  std::string text = "SMB ";
  text.append(name_of(agreement.dialect)).append(", ").append(name_of_signing(agreement.signing));
  text.append(", ").append(name_of_cipher(agreement.cipher));
  return text.append("; ").append(text_of(found));
}

SealKeys message_of(const Handshake::Session& session, std::string_view detail) {
  const Agreement& agreement = session.agreement;
  SealKeys message{.session = session.id,
                   .dialect = static_cast<std::uint16_t>(agreement.dialect),
                   .signing = static_cast<std::uint16_t>(agreement.signing),
                   .cipher = static_cast<std::uint16_t>(agreement.cipher),
                   .must_sign = agreement.must_sign,
                   .signing_key = secret_slice(Bytes(session.for_client.signing.bytes)),
                   .to_server = secret_slice(Bytes(session.for_client.to_server)),
                   .to_client = secret_slice(Bytes(session.for_client.to_client)),
                   .detail = Slice::copy_of(as_bytes(detail))};
  return message;
}

// Rejects what only a program other than ours might send.
std::optional<Agreement> agreement_in(const SealKeys& message) {
  Agreement agreement{.dialect = static_cast<smb2::Dialect>(message.dialect),
                      .signing = static_cast<Signing>(message.signing),
                      .cipher = static_cast<Cipher>(message.cipher),
                      .must_sign = message.must_sign};
  const std::size_t size = agreement.cipher == Cipher::none ? 0 : key_bytes(agreement.cipher);
  const bool fits = agreement.signing <= Signing::aes_gmac && agreement.cipher <= Cipher::aes_256_gcm &&
                    message.signing_key.size() == 16 && message.to_server.size() == size &&
                    message.to_client.size() == size;
  return fits ? std::optional(agreement) : std::nullopt;
}

// A user has logged in: earlier refusals no longer matter.
bool accepts_login(const Frame& frame) {
  if (frame.kind != FrameKind::smb2) return false;
  const auto header = smb2::parse_header(frame.message());
  return header && header->is_response() && header->command == smb2::Command::session_setup &&
         header->status == Status::success;
}

SecretBytes secret_of(const Slice& bytes) {
  SecretBytes secret(bytes.size());
  std::copy(bytes.bytes().begin(), bytes.bytes().end(), secret.data());
  return secret;
}

}  // namespace

std::string text_of(const Found& found) {
  if (found.mechanism == Mechanism::ntlm) return "key from an NTLM hash";
  return std::string("key from the keytab (")
      .append(to_text(found.etype))
      .append(", version ")
      .append(std::to_string(found.kvno))
      .append(")");
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string clean(text.substr(0, kMost));
  std::erase_if(clean, [](char letter) { return letter < ' ' || letter > '~'; });
  return clean;
}

Unsealed unsealed_for(modules::Reason reason) { return {.reason = Slice::copy_of(as_bytes(reason->code))}; }

void Sealing::reset(modules::Reason reason, Outputs& out) {
  why_reset_ = reason;
  out.abort();
}

Frame NearSealing::from_stream(const Frame& frame) {
  if (refused_ != reasons::optimised && accepts_login(frame)) refused_ = reasons::optimised;
  return frame;
}

bool NearSealing::takes(const TwinMessage& message, Outputs& out) {
  if (const auto* refused = std::get_if<LoginRefused>(&message)) {
    refused_ = reasons::with_code(as_text(refused->reason.bytes()));
    return true;
  }
  const auto* given = std::get_if<SealKeys>(&message);
  if (!given) return false;
  begin(*given, out);
  for (const Slice* key : {&given->signing_key, &given->to_server, &given->to_client}) wipe(*key);
  return true;
}

void NearSealing::begin(const SealKeys& given, Outputs& out) {
  refused_ = reasons::optimised;
  const auto agreement = agreement_in(given);
  SessionKeys keys;
  if (agreement) {
    std::copy_n(given.signing_key.bytes().begin(), keys.signing.bytes.size(), keys.signing.bytes.begin());
    keys.to_server = secret_of(given.to_server);
    keys.to_client = secret_of(given.to_client);
  }
  if (!agreement || !leg_.begin(given.session, *agreement, keys)) out.abort();
  detail_ = printable(as_text(given.detail.bytes()));
}

FarSealing::FarSealing(std::shared_ptr<const ServerKeys> keys, Half& half, std::shared_ptr<Unopened> unopened,
                       const modules::Ends& ends)
    : LegSealing(Leg(Leg::To::server)),
      handshake_(std::move(keys)),
      half_(half),
      unopened_(std::move(unopened)),
      ends_(ends) {}

std::optional<Frame> FarSealing::from_lan(TimePoint now, const Frame& frame, Outputs& out) {
  Handshake::Answer answer = handshake_.from_server(frame);
  if (answer.broken) {
    unopened_->note(now, ends_, reasons::smb_not_understood);
    reset(reasons::smb_not_understood, out);
    return std::nullopt;
  }
  if (refused_ != reasons::optimised && accepts_login(answer.frame)) refused_ = reasons::optimised;
  std::optional<Frame> opened;
  if (answer.session) {
    if (!leg_.begin(answer.session->id, answer.session->agreement, answer.session->for_server)) {
      reset(reasons::smb_not_understood, out);
      return std::nullopt;
    }
    // The server proves by its response that it has the same key.
    auto first = leg_.open(answer.frame);
    if (!first) {
      leg_.end(answer.session->id);
      return cannot_open(now, {.reason = reasons::smb_wrong_key, .detail = {}}, answer.frame, out);
    }
    opened = std::move(*first);
    detail_ = detail_of(answer.session->agreement, answer.session->found);
    out.tell(message_of(*answer.session, detail_));
  }
  if (answer.refused && leg_.empty()) refused(*answer.refused, out);
  if (answer.missing) return cannot_open(now, *answer.missing, answer.frame, out);
  if (!opened) opened = LegSealing::from_lan(now, answer.frame, out);
  if (answer.logged_off && !leg_.has(*answer.logged_off)) handshake_.end(*answer.logged_off);
  return opened;
}

// Without a reason of its own, a further refusal may follow from the first: the client then tries another
// method.
void FarSealing::refused(const Missing& why, Outputs& out) {
  if (refused_ != reasons::optimised && why.reason == reasons::smb_login) return;
  refused_ = why.reason;
  detail_ = why.detail;
  out.tell(LoginRefused{.reason = Slice::copy_of(as_bytes(refused_->code))});
}

// The session passes unchanged if the legs have the same keys; otherwise its client must begin again.
std::optional<Frame> FarSealing::cannot_open(TimePoint now, const Missing& missing, const Frame& frame,
                                             Outputs& out) {
  detail_ = missing.detail;
  if (handshake_.is_changed()) {
    unopened_->note(now, ends_, missing.reason);
    out.tell(unsealed_for(missing.reason));  // the flow's reason there, too
    reset(missing.reason, out);
    return std::nullopt;
  }
  half_.cannot_open(missing.reason);
  out.tell(unsealed_for(missing.reason));
  leg_.passes(frame);
  return frame;
}

}  // namespace longhaul::smb::seal
