// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/archive.h"

#include <zlib.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace longhaul::cli {
namespace {

constexpr std::size_t kTarBlock = 512;

// The ustar format of POSIX.1-1988.
struct TarHeader {
  char name[100], mode[8], owner[8], group[8], size[12], time[12], checksum[8], type, link[100];
  char magic[6], version[2], owner_name[32], group_name[32], device[16], prefix[155], padding[12];
};
static_assert(sizeof(TarHeader) == kTarBlock);

template <std::size_t N>
void octal(char (&field)[N], std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%0*llo", static_cast<int>(N - 1), static_cast<unsigned long long>(value));
  std::memcpy(field, text.data(), N - 1);
}

}  // namespace

Archive::Archive(std::string folder, std::chrono::system_clock::time_point now)
    : folder_(std::move(folder)), now_(now) {}

void Archive::add(std::string_view name, std::string_view text) {
  TarHeader header{};
  const std::string path = folder_ + "/" + std::string(name);
  std::memcpy(header.name, path.data(), std::min(path.size(), sizeof header.name - 1));
  octal(header.mode, 0600);
  octal(header.owner, 0);
  octal(header.group, 0);
  octal(header.size, text.size());
  octal(header.time, static_cast<std::uint64_t>(std::chrono::system_clock::to_time_t(now_)));
  header.type = '0';
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  std::memset(header.checksum, ' ', sizeof header.checksum);
  unsigned sum = 0;
  unsigned char bytes[kTarBlock];
  std::memcpy(bytes, &header, kTarBlock);
  for (const unsigned char byte : bytes) sum += byte;
  std::snprintf(header.checksum, sizeof header.checksum, "%06o", sum);
  tar_.append(reinterpret_cast<const char*>(&header), kTarBlock);
  tar_.append(text);
  tar_.append((kTarBlock - text.size() % kTarBlock) % kTarBlock, '\0');
}

std::string Archive::finish() {
  tar_.append(2 * kTarBlock, '\0');
  z_stream stream{};
  constexpr int kGzip = 16 + 15;  // the header of gzip, and the largest window
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("no memory to compress the archive");
  std::string out(::deflateBound(&stream, tar_.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(tar_.data());
  stream.avail_in = static_cast<uInt>(tar_.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int done = ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (done != Z_STREAM_END) throw std::runtime_error("the archive could not be compressed");
  return out;
}

}  // namespace longhaul::cli
