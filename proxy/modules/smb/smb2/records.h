// SPDX-License-Identifier: Apache-2.0
// All records of SMB2 and SMB3 in one include, and a readable description of a frame of either dialect.
// Parsers only: the halves act on the results.
#pragma once
#include <string>

#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/smb2/records_break.h"
#include "proxy/modules/smb/smb2/records_create.h"
#include "proxy/modules/smb/smb2/records_file.h"
#include "proxy/modules/smb/smb2/records_query.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::smb2 {

std::string_view name_of(Command command);

// For tests and trace logs: command, id, status, credits, sizes; one part for each element of a compound.
std::string describe(Bytes message);
std::string describe(const Frame& frame);

}  // namespace longhaul::smb::smb2
