// SPDX-License-Identifier: Apache-2.0
// The secrets of connections, in a file from which Wireshark decrypts what it captured: NSS key log lines for TLS, and
// lines of our own for the packets of UDP (examples/wireshark). Exists only where [link] key_log asks for it.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "proxy/link/udp/packet_keys.h"

namespace longhaul::link {

void append_hex(std::string& text, Bytes bytes);

class KeyLog {
 public:
  // Opens the file, or makes it with mode 0600; appends. Throws std::runtime_error with one sentence where it is a
  // link, no file, another user's, or readable by others.
  explicit KeyLog(const std::filesystem::path& file);
  ~KeyLog();
  KeyLog(const KeyLog&) = delete;
  KeyLog& operator=(const KeyLog&) = delete;

  // Whole lines. Of connections whose peers have proved their keys: strangers cannot fill the disk.
  void write(std::string_view lines);
  void write(const udp::CarrierKeys& keys, udp::Cipher cipher);

 private:
  int descriptor_;
};

}  // namespace longhaul::link
