// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/handshake.h"

#include <algorithm>

#include "proxy/modules/smb/seal/negotiation.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::seal {

using smb2::Command;
using smb2::Dialect;

Frame Handshake::from_client(const Frame& frame) {
  if (frame.kind != FrameKind::smb2) return frame;
  const auto elements = smb2::parse_elements(frame.message());
  if (!elements || elements->size() != 1) return frame;
  const smb2::Element& element = elements->front();
  const smb2::Header& header = element.header;
  if (header.command == Command::negotiate && !negotiated_ && !request_) {
    request_ = frame;
    Frame changed = request_for_server(frame);
    client_ = server_ = {};
    extend(client_, frame.message());
    extend(server_, changed.message());
    return changed;
  }
  if (header.command != Command::session_setup || !negotiated_ || done_.contains(header.session_id))
    return frame;
  const auto setup = smb2::parse_session_setup_request(element.bytes);
  if (!setup || setup->binding) return frame;

  auto known = between_.extract(header.session_id);
  Setup next = known.empty() ? Setup{Login(keys_), client_, server_} : std::move(known.mapped());
  make_room();
  next.asked = ++requests_;
  next.must_sign |= (setup->security_mode & smb2::security_mode::signing_required) != 0;
  next.login.from_client(setup->security);
  extend(next.client, frame.message());
  extend(next.server, frame.message());
  asked_.insert_or_assign(header.message_id, std::move(next));
  return frame;
}

void Handshake::make_room() {
  if (asked_.size() + between_.size() < kMostLogins) return;
  const auto is_older = [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; };
  const auto asked = std::ranges::min_element(asked_, is_older);
  const auto between = std::ranges::min_element(between_, is_older);
  if (between == between_.end() || (asked != asked_.end() && is_older(*asked, *between))) {
    asked_.erase(asked);
  } else {
    between_.erase(between);
  }
}

Handshake::Answer Handshake::from_server(const Frame& frame) {
  Answer answer{.frame = frame};
  if (frame.kind != FrameKind::smb2) return answer;
  const auto elements = smb2::parse_elements(frame.message());
  if (!elements || elements->size() != 1) return answer;
  const smb2::Element& element = elements->front();
  if (element.header.command == Command::negotiate && !negotiated_) negotiated(frame, element, answer);
  if (element.header.command == Command::session_setup) set_up(frame, element, answer);
  if (element.header.command == Command::logoff && element.header.status == Status::success)
    answer.logged_off = element.header.session_id;
  return answer;
}

void Handshake::negotiated(const Frame& frame, const smb2::Element& element, Answer& answer) {
  if (element.header.status != Status::success) return request_.reset();  // the client may try again
  auto result = answer_for_client(request_ ? &*request_ : nullptr, frame);
  if (!result) {
    answer.broken = request_.has_value();
    return;
  }
  if (result->agreement.dialect == Dialect::wildcard) return;  // another NEGOTIATE follows
  negotiated_ = true;
  agreement_ = result->agreement;
  changed_ = result->changed;
  extend(server_, frame.message());
  extend(client_, result->frame.message());
  answer.frame = std::move(result->frame);
  request_.reset();
}

void Handshake::set_up(const Frame& frame, const smb2::Element& element, Answer& answer) {
  const smb2::Header& header = element.header;
  auto asked = asked_.extract(header.message_id);
  const bool goes_on = header.status == Status::more_processing_required;
  if (done_.contains(header.session_id)) return;
  if (!goes_on && header.status != Status::success) {
    if (!asked.empty()) answer.refused = asked.mapped().login.refused_with(header.status);
    return;
  }
  const auto response = smb2::parse_session_setup_response(element.bytes);
  if (asked.empty() || !response || done_.size() >= kMostSessions) {
    // There are more than can be tracked, or it binds a session of another connection.
    if (!goes_on)
      answer.missing = Missing{.reason = reasons::smb_login, .detail = "its beginning was not observed"};
    return;
  }
  Setup setup = std::move(asked.mapped());
  setup.login.from_server(response->security);
  if (goes_on) {
    if (setup.login.is_refused()) answer.refused = setup.login.missing();
    extend(setup.client, frame.message());
    extend(setup.server, frame.message());
    between_.insert_or_assign(header.session_id, std::move(setup));
    return;
  }
  // 3.2.5.3.1: guests and anonymous sessions have no keys.
  if (response->flags & (smb2::session_flags::guest | smb2::session_flags::anonymous)) return;
  const Found* const found = setup.login.found();
  if (!found) {
    answer.missing = setup.login.missing();
    return;
  }
  Session session{.id = header.session_id, .agreement = agreement_};
  session.agreement.must_sign |= setup.must_sign;
  session.found = {.key = SecretBytes(found->key.size()),
                   .mechanism = found->mechanism,
                   .etype = found->etype,
                   .kvno = found->kvno,
                   .user = found->user};
  std::copy_n(Bytes(found->key).begin(), found->key.size(), session.found.key.data());
  session.for_client = derive(agreement_, found->key, setup.client);
  session.for_server = derive(agreement_, found->key, setup.server);
  answer.session = std::move(session);
  done_.insert(header.session_id);
}

}  // namespace longhaul::smb::seal
