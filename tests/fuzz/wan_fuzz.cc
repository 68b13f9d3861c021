// SPDX-License-Identifier: Apache-2.0
// Any frame is counted within its size and keeps it when its checksum is finished; any text is a setting of
// the line or a sentence, and what was accepted gives a line that carries packets. The first byte chooses.
#include <cstring>
#include <memory>
#include <string_view>

#include "fuzz/target.h"
#include "tools/wan/frame.h"
#include "tools/wan/settings.h"

namespace longhaul::fuzz::wan_target {
using namespace longhaul::wan;

namespace {

void read_frame(const unsigned char* data, std::size_t size) {
  const auto copy =
      std::make_unique<std::byte[]>(size);  // of exactly this size, so that the sanitizer sees its end
  std::memcpy(copy.get(), data, size);
  const std::span<std::byte> frame{copy.get(), size};
  const auto before = ip_bytes(frame);
  require(before <= size);
  finish_checksum(frame);
  require(ip_bytes(frame) == before);
}

void read_setting(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return;
  LineSettings settings;
  const auto error = apply(settings, text.substr(0, equals), text.substr(equals + 1));
  if (error) {
    require(!error->empty());
    return;
  }
  const LineConfig line = resolve(settings);
  require(line.a_to_b.rate_bits <= 10'000'000'000 && line.a_to_b.delay >= Duration{0});
  require(line.a_to_b.loss >= 0 && line.a_to_b.loss <= 1);
  (void)to_json(line.a_to_b);
  Link link{line.a_to_b, settings.seed};
  constexpr TimePoint kStart{std::chrono::hours{1}};
  for (PacketId id = 0; id < 8; ++id) link.arrive(kStart, 1500, id);
  link.change(kStart + std::chrono::milliseconds{3}, line.b_to_a);
  while (link.poll(kStart + std::chrono::hours{1})) {
  }
  require(link.packets_inside() == 0);
}

}  // namespace

FUZZ_TARGET(wan) {
  if (size == 0) return 0;
  if (data[0] % 2 == 0)
    read_frame(data + 1, size - 1);
  else
    read_setting({reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}

}  // namespace longhaul::fuzz::wan_target
