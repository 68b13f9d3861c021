// SPDX-License-Identifier: Apache-2.0
// The one place where Asio and Beast are compiled; everywhere else only their declarations are read.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
