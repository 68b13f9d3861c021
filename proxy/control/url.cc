// SPDX-License-Identifier: Apache-2.0
// The one place where Boost.URL is compiled: Debian's header package holds its sources, so no library is
// needed.
#include <boost/url/src.hpp>
