// SPDX-License-Identifier: Apache-2.0
// The only file that compiles Asio's TLS streams; all others include only their declarations.
#include <boost/asio/ssl/impl/src.hpp>
