// SPDX-License-Identifier: Apache-2.0
// For `co_await`: an operation's error is a value beside its result, not an exception.
#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace longhaul::measuring {

inline constexpr auto kOutcome = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace longhaul::measuring
