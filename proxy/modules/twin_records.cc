// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/twin_records.h"

namespace longhaul::modules {

Result<std::optional<TwinReader::Said>> TwinReader::feed(Slice body) {
  if (body.empty()) return link::LinkError::malformed_record;
  const auto kind = static_cast<TwinRecord>(body.bytes()[0]);
  switch (kind) {
    case TwinRecord::aside:
      return Said{.aside = true, .message = std::nullopt};
    case TwinRecord::message:
      if (pieces_.empty()) return Said{.message = body.from(kTwinRecordHead)};
      [[fallthrough]];
    case TwinRecord::piece:
      if (pieces_.size() + body.size() - kTwinRecordHead > kMaxTwinMessage)
        return link::LinkError::malformed_record;
      append(pieces_, body.bytes().subspan(kTwinRecordHead));
      if (kind == TwinRecord::piece) return std::nullopt;
      Said said{.message = Slice::copy_of(pieces_)};
      pieces_ = {};
      return said;
  }
  return std::nullopt;  // of a later version
}

}  // namespace longhaul::modules
