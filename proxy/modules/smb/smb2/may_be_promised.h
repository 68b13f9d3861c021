// SPDX-License-Identifier: Apache-2.0
// Which WRITE may be answered before the server has answered it, as far as its open and its bytes are
// concerned: if the client could have stored the data in its own cache. Pure, so that each condition can be
// tested. near_writes.h checks the free space, and the fate of earlier promises.
#pragma once
#include "proxy/modules/smb/smb2/negotiated.h"
#include "proxy/modules/smb/smb2/open.h"

namespace longhaul::smb::smb2 {

bool may_be_promised(const Open& open, const Tree& tree, const Header& header, const WriteRequest& request,
                     const Negotiated& negotiated);

}  // namespace longhaul::smb::smb2
