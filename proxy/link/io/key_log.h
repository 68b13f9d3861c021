// SPDX-License-Identifier: Apache-2.0
// Writes the secrets of connections to a file, with which Wireshark can decrypt captures: NSS key log lines
// for TLS, and lines in our own format for UDP packets (examples/wireshark). Exists only if [link] key_log is
// set.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "proxy/link/types.h"
#include "proxy/link/udp/packet_keys.h"

namespace longhaul::link {

void append_hex(std::string& text, Bytes bytes);

class KeyLog {
 public:
  // Opens the file, or creates it with mode 0600; appends. Throws std::runtime_error with one sentence if it
  // is a symbolic or hard link, not a regular file, owned by another user, or readable by others.
  explicit KeyLog(const std::filesystem::path& file);
  ~KeyLog();
  KeyLog(const KeyLog&) = delete;
  KeyLog& operator=(const KeyLog&) = delete;

  // Writes whole lines. Only for connections whose peers have proved their keys, so that strangers cannot
  // fill the disk.
  void write(std::string_view lines);
  // Includes the session and the sending side, because the carriers of all paths carry the streams of one
  // session. `dialler`: the side of the connection's dialler in the session, which the other proxy may have
  // opened.
  void write(const udp::CarrierKeys& keys, udp::Cipher cipher, const Token& session, Side dialler);

 private:
  int descriptor_;
};

}  // namespace longhaul::link
