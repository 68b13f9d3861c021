// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/used_ids.h"

namespace longhaul::smb::seal {
namespace {

// No client reaches it, and arithmetic above it is safe.
constexpr smb2::MessageId kLastUsable{1ull << 62};

}  // namespace

Result<void> UsedIds::use(const smb2::Header& request) {
  if (request.command == smb2::Command::cancel) return {};  // has the id of its target
  if (request.message_id >= kLastUsable) return Error::forged;
  const std::uint64_t first = request.message_id.number();
  const Interval ids{first, first + request.charge()};
  if (ids_.overlaps(ids)) return Error::forged;
  ids_.add(ids);
  // The ids of the lowest gap count as used, too.
  if (const auto& runs = ids_.intervals(); runs.size() > kMostRuns) ids_.add({runs[0].end, runs[1].begin});
  return {};
}

void UsedIds::note(const Frame& frame) {
  if (frame.kind != FrameKind::smb2) return;
  const auto elements = smb2::parse_elements(frame.message());
  if (!elements) return;
  for (const smb2::Element& element : *elements)
    if (!element.header.is_response()) (void)use(element.header);
}

}  // namespace longhaul::smb::seal
