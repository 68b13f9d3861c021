// SPDX-License-Identifier: Apache-2.0
// Errors in data from the twin.
#pragma once
#include "codecs/result.h"

namespace longhaul::reduction {

enum class Error {
  malformed_message = 1,  // a protocol violation: ends the session
  unexpected_message,     // the same
  malformed_block,        // ends the stream
  not_restorable,         // the same: the output differs, and the twin no longer has the correct bytes
};

const boost::system::error_category& error_category();
inline boost::system::error_code make_error_code(Error error) {
  return {static_cast<int>(error), error_category()};
}

}  // namespace longhaul::reduction

template <>
struct boost::system::is_error_code_enum<longhaul::reduction::Error> : std::true_type {};
