// SPDX-License-Identifier: Apache-2.0
// The one place where Asio's TLS streams are compiled; everywhere else only their declarations are read.
#include <boost/asio/ssl/impl/src.hpp>
