// SPDX-License-Identifier: Apache-2.0
// Compiles Boost.URL in one place: Debian's header package contains its sources, so no library is needed.
#include <boost/url/src.hpp>
