// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/key_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace longhaul::link {
namespace {

// Why secrets must not be written to the open file; empty if they may.
std::string objection(int descriptor) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0) return std::strerror(errno);
  if (!S_ISREG(about.st_mode)) return "it is not a regular file";
  if (about.st_uid != ::geteuid()) return "it belongs to another user";
  if ((about.st_mode & 077) != 0) return "other users may read it; remove it, or chmod it to 0600";
  if (about.st_nlink != 1) return "it has another hard link";
  return {};
}

}  // namespace

void append_hex(std::string& text, Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
}

KeyLog::KeyLog(const std::filesystem::path& file)
    : descriptor_(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600)) {
  std::string why = descriptor_ < 0 ? std::strerror(errno) : objection(descriptor_);
  if (why.empty()) return;
  if (descriptor_ >= 0) ::close(descriptor_);
  throw std::runtime_error("[link] key_log: the file " + file.string() + " cannot be used: " + why);
}

KeyLog::~KeyLog() { ::close(descriptor_); }

// Only a few lines per connection, so the write does not wait for the disk. If the disk is full, they are
// lost.
void KeyLog::write(std::string_view lines) { (void)!::write(descriptor_, lines.data(), lines.size()); }

void KeyLog::write(const udp::CarrierKeys& keys, udp::Cipher cipher, const Token& session, Side dialler) {
  std::string lines;
  for (const udp::DirectionKeys* direction : {&keys.dialler_to_acceptor, &keys.acceptor_to_dialler}) {
    lines += "LONGHAUL_UDP_SECRET ";
    append_hex(lines, direction->id.bytes);
    lines += cipher == udp::Cipher::aes_128_gcm ? " AES_128_GCM " : " CHACHA20_POLY1305 ";
    append_hex(lines, direction->secret.bytes);
    lines += ' ';
    append_hex(lines, session);
    const bool is_dialler = (direction == &keys.dialler_to_acceptor) == (dialler == Side::dialler);
    lines += is_dialler ? " dialler\n" : " acceptor\n";
  }
  write(lines);
}

}  // namespace longhaul::link
