// SPDX-License-Identifier: Apache-2.0
// See notify_information.h.
#include "proxy/modules/smb/notify_information.h"

#include "codecs/little_endian.h"
#include "proxy/modules/smb/errors.h"

namespace longhaul::smb {

Result<std::vector<NotifyEntry>> parse_notify_information(Bytes buffer) {
  constexpr std::size_t kNameAt = 12;
  std::vector<NotifyEntry> entries;
  while (!buffer.empty()) {
    if (buffer.size() < kNameAt) return Error::malformed_record;
    const auto next = load_le<std::uint32_t>(buffer, 0);
    const auto name_bytes = load_le<std::uint32_t>(buffer, 8);
    if (next > buffer.size() || (next != 0 && next < kNameAt)) return Error::malformed_record;
    const Bytes entry = next == 0 ? buffer : buffer.first(next);
    if (name_bytes > entry.size() - kNameAt) return Error::malformed_record;
    entries.push_back({NotifyAction{load_le<std::uint32_t>(buffer, 4)}, entry.subspan(kNameAt, name_bytes)});
    buffer = next == 0 ? Bytes{} : buffer.subspan(next);
  }
  return entries;
}

}  // namespace longhaul::smb
