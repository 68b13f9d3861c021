// SPDX-License-Identifier: Apache-2.0
// Writes the secrets of connections to a file with which Wireshark decrypts captures: NSS key log lines for
// TLS, and lines of our own for UDP packets (examples/wireshark). Exists only if [link] key_log is set.
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
  // is a link, not a regular file, another user's, or readable by others.
  explicit KeyLog(const std::filesystem::path& file);
  ~KeyLog();
  KeyLog(const KeyLog&) = delete;
  KeyLog& operator=(const KeyLog&) = delete;

  // Whole lines. Only for connections whose peers have proved their keys: strangers cannot fill the disk.
  void write(std::string_view lines);
  // With the session and the side that sends there, because the carriers of all paths move the streams of one
  // session. `dialler`: the side that the connection's dialler has in the session; the other one may have
  // dialled before.
  void write(const udp::CarrierKeys& keys, udp::Cipher cipher, const Token& session, Side dialler);

 private:
  int descriptor_;
};

}  // namespace longhaul::link
