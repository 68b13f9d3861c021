// SPDX-License-Identifier: Apache-2.0
// Asio's own code, compiled once for the measuring tools, which do not link the daemon.
#include <boost/asio/impl/src.hpp>
