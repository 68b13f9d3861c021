// SPDX-License-Identifier: Apache-2.0
// Why a connection can no longer be parsed: from the first byte of the faulty frame on, the bytes pass
// unchanged. Only the last two errors end a flow.
#pragma once
#include "codecs/result.h"

namespace longhaul::smb {

enum class Error {
  frame_too_large = 1,  // larger than the limit of held bytes
  unknown_frame,        // not a packet type of the NetBIOS session service, and not an SMB message
  malformed_header,     // an invalid SMB header, or chain of headers
  malformed_record,     // a request or response whose lengths and offsets do not fit
  // Of sessions whose keys are known (seal/leg.h):
  forged,       // a signature or an encryption does not fit its session's key
  unprotected,  // less protected than its session, its tree or its request requires
};

const boost::system::error_category& error_category();
inline boost::system::error_code make_error_code(Error error) {
  return {static_cast<int>(error), error_category()};
}

}  // namespace longhaul::smb

template <>
struct boost::system::is_error_code_enum<longhaul::smb::Error> : std::true_type {};
