// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb {

Slice encode(const TwinMessage& message) { return twin::encode(message); }

Result<TwinMessage> decode(Bytes message) { return twin::decode<TwinMessage>(message); }

}  // namespace longhaul::smb
