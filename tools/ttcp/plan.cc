// SPDX-License-Identifier: Apache-2.0
// Multiplies out kinds, sizes and trials, and refuses what no packet can hold.
#include "tools/ttcp/plan.h"

#include <algorithm>
#include <stdexcept>

namespace longhaul::ttcp {

std::vector<Test> make_plan(const PlanOptions& options) {
  const auto refuse = [](const std::string& sentence) { throw std::invalid_argument(sentence); };
  if (options.sizes.empty()) refuse("a sweep needs at least one packet size");
  if (options.kinds.empty()) refuse("a sweep needs at least one kind of test");
  if (options.trials == 0) refuse("a sweep needs at least one trial");
  if (options.padding_bytes > kMostPadding)
    refuse("the padding may be at most " + std::to_string(kMostPadding) + " bytes");
  if (options.packets && *options.packets == 0) refuse("a test needs at least one packet");
  for (const std::uint32_t size : options.sizes) {
    const bool padded = std::ranges::any_of(options.kinds, is_padded);
    const std::uint32_t most = kMostDatagramBytes - (padded ? options.padding_bytes : 0);
    if (size < kLeastPacketBytes || size > most)
      refuse("a packet of " + std::to_string(size) + " bytes is not between " +
             std::to_string(kLeastPacketBytes) + " and " + std::to_string(most));
  }
  std::vector<Test> plan;
  for (unsigned trial = 1; trial <= options.trials; ++trial)
    for (const Kind kind : options.kinds)
      for (const std::uint32_t size : options.sizes) {
        const std::uint64_t packets =
            options.packets.value_or(std::max<std::uint64_t>(1, options.bytes / size));
        if (packets > kMostPackets)
          refuse(std::to_string(packets) + " packets in one test are too many; the maximum is " +
                 std::to_string(kMostPackets));
        plan.push_back({kind, trial, size, is_padded(kind) ? options.padding_bytes : 0, packets});
      }
  return plan;
}

std::string name_of(Kind kind, std::uint32_t padding_bytes) {
  if (kind == Kind::tcp) return "TCP";
  if (kind == Kind::udp) return "UDP";
  return "UDP+" + std::to_string(padding_bytes) + (has_setup(kind) ? "+RTT" : "");
}

std::optional<Kind> parse_kind(std::string_view text) {
  if (text == "tcp") return Kind::tcp;
  if (text == "udp") return Kind::udp;
  if (text == "udp+12") return Kind::udp_padded;
  if (text == "udp+12+rtt") return Kind::udp_padded_setup;
  return std::nullopt;
}

}  // namespace longhaul::ttcp
