// SPDX-License-Identifier: Apache-2.0
// One READ_RAW or WRITE_RAW as followed by either half: which frame, from which side, will have no SMB
// header. Frames in and a state out; the halves decide what waits meanwhile.
#pragma once
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

inline bool is_raw(const Message& request) {
  return request.header.command == Command::read_raw || request.header.command == Command::write_raw;
}

// [MS-CIFS] 3.2.4.14.1, 3.2.4.15.1: a client has no other pending request meanwhile. Between a server's
// go-ahead and the data, the server reads only the data.
class RawTransfer {
 public:
  // The request is passed to the server.
  void begin(const Header& request);
  // A frame of the server while under_way(); `connection` knows which other requests may be answered
  // meanwhile.
  enum class Says : std::uint8_t {
    other,     // a message like any other
    data,      // the last frame of READ_RAW: not parsed as a message, whatever its content
    go_ahead,  // the data of WRITE_RAW is due
  };
  Says from_server(const Frame& frame, const Connection& connection);
  // A frame of the client while data_due_from_client(): the data, with which the transfer ends.
  void from_client() { state_ = State::none; }

  MessageNumber number() const { return number_; }  // of the last transfer
  bool under_way() const { return state_ != State::none; }
  bool data_due_from_client() const { return state_ == State::write_data; }
  Bare bare_from_client() const { return data_due_from_client() ? Bare::expected : Bare::unexpected; }
  Bare bare_from_server() const { return state_ == State::read ? Bare::expected : Bare::unexpected; }

 private:
  enum class State : std::uint8_t {
    none,
    read,         // the server's next frame is the data, or an oplock break before it
    write_asked,  // its go-ahead, or an error that ends the transfer
    write_data,   // the client's next frame is the data
  } state_ = State::none;
  MessageNumber number_{};
};

}  // namespace longhaul::smb::smb1
