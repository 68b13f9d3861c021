// SPDX-License-Identifier: Apache-2.0
// What the outside world can cause is a value: the result type used by every pure part. Leaves the error
// enumerations to the modules that raise them.
#pragma once
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

namespace longhaul {

template <class T>
using Result = boost::system::result<T, boost::system::error_code>;

}  // namespace longhaul
