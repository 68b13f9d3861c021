// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/raw_transfer.h"

#include "proxy/modules/smb/smb1/records.h"

namespace longhaul::smb::smb1 {

namespace {

// [MS-CIFS] 2.2.4.22: the only message that may precede the data. Data that looks exactly like it would
// mislead clients, too.
bool is_break(const Message& message) {
  if (message.header.is_reply() || message.header.command != Command::locking_andx ||
      message.header.mid != kBreakMid)
    return false;
  const auto locking = parse_locking_request(message.first());
  return locking && locking->is_oplock_release() && locking->locks == 0 && locking->unlocks == 0;
}

bool is_awaited(const Message& message, const Connection& connection) {
  const Pending* pending = connection.pending(number_of(message.header));
  return message.header.is_reply() && pending && pending->header.command == message.header.command &&
         message.header.command != Command::read_raw;
}

}  // namespace

void RawTransfer::begin(const Header& request) {
  state_ = request.command == Command::read_raw ? State::read : State::write_asked;
  number_ = number_of(request);
}

RawTransfer::Says RawTransfer::from_server(const Frame& frame, const Connection& connection) {
  const auto message = frame.kind == FrameKind::smb1 ? parse_message(frame.message())
                                                     : Result<Message>(Error::malformed_header);
  if (state_ == State::read) {
    if (message && (is_break(*message) || is_awaited(*message, connection))) return Says::other;
    state_ = State::none;
    return Says::data;
  }
  if (state_ != State::write_asked || !message || number_of(message->header) != number_) return Says::other;
  // [MS-CIFS] 2.2.4.25.2: the go-ahead; Samba sends it without the response bit. An error arrives as
  // WRITE_COMPLETE, and from some servers as WRITE_RAW.
  if (message->header.command == Command::write_raw && message->header.status == 0) {
    state_ = State::write_data;
    return Says::go_ahead;
  }
  state_ = State::none;
  return Says::other;
}

}  // namespace longhaul::smb::smb1
