// SPDX-License-Identifier: Apache-2.0
// The result type of all pure parts: errors with external causes are values. Each part has its own error
// enumeration.
#pragma once
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

namespace longhaul {

template <class T>
using Result = boost::system::result<T, boost::system::error_code>;

}  // namespace longhaul
