// SPDX-License-Identifier: Apache-2.0
// A response of the server that the client has not requested yet, sent to the near half.
#pragma once
#include <utility>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

inline void push_answer(FarSide& side, const OpenKey& key, Command command, Status status, Slice request,
                        Slice response) {
  side.counters().ahead_bytes += response.size();
  const Answer answer{.open = key,
                      .command = static_cast<std::uint16_t>(command),
                      .status = static_cast<std::uint32_t>(status),
                      .request = std::move(request),
                      .response_bytes = static_cast<std::uint32_t>(response.size())};
  side.out().tell(answer, std::move(response));
}

}  // namespace longhaul::smb::smb2
