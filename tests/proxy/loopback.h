// SPDX-License-Identifier: Apache-2.0
// Coroutines and socket pairs on loopback for tests, with one deadline for everything that waits. Leaves the
// checks to the tests.
#pragma once
#include <boost/asio.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace longhaul::testing {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

inline constexpr auto kSays = asio::as_tuple(asio::use_awaitable);

// Runs the coroutine to its end on this thread; what it throws comes out here. A test that waits for
// something that never comes fails after half a minute.
void run(asio::io_context& io, asio::awaitable<void> body);

// `a && b` waits for both, and ends the other when one throws; `a || b` waits for the first and ends the
// other: as in asio::experimental::awaitable_operators. Those are compiled again for each pair of types, at a
// second each; here everything but the results is awaitable<void>.
asio::awaitable<void> both(asio::awaitable<void> a, asio::awaitable<void> b);
asio::awaitable<std::size_t> first(asio::awaitable<void> a, asio::awaitable<void> b);  // 0 or 1

namespace detail {

// What an awaitable gave, or will have given.
template <class T>
struct Gives {
  using Alternative = T;
  std::optional<T> value;
  std::tuple<T> take() { return {std::move(*value)}; }
  Alternative alternative() { return std::move(*value); }
};
template <>
struct Gives<void> {
  using Alternative = std::monostate;
  std::tuple<> take() { return {}; }
  Alternative alternative() { return {}; }
};
template <class... T>
struct Gives<std::tuple<T...>> {
  using Alternative = std::tuple<T...>;
  std::optional<std::tuple<T...>> value;
  std::tuple<T...> take() { return std::move(*value); }
  Alternative alternative() { return std::move(*value); }
};

template <class T>
asio::awaitable<void> keep(asio::awaitable<T> from, Gives<T>& in) {
  if constexpr (std::is_void_v<T>)
    co_await std::move(from);
  else
    in.value.emplace(co_await std::move(from));
}

template <class T, class U>
using Joined = decltype(std::tuple_cat(std::declval<Gives<T>>().take(), std::declval<Gives<U>>().take()));
// Nothing, one thing, or a tuple.
template <class Tuple>
struct Unpacked {
  using type = Tuple;
};
template <>
struct Unpacked<std::tuple<>> {
  using type = void;
};
template <class T>
struct Unpacked<std::tuple<T>> {
  using type = T;
};

}  // namespace detail

template <class T, class U>
asio::awaitable<typename detail::Unpacked<detail::Joined<T, U>>::type> operator&&(asio::awaitable<T> a,
                                                                                  asio::awaitable<U> b) {
  detail::Gives<T> from_a;
  detail::Gives<U> from_b;
  co_await both(detail::keep(std::move(a), from_a), detail::keep(std::move(b), from_b));
  detail::Joined<T, U> joined = std::tuple_cat(from_a.take(), from_b.take());
  if constexpr (std::tuple_size_v<detail::Joined<T, U>> == 1)
    co_return std::get<0>(std::move(joined));
  else if constexpr (std::tuple_size_v<detail::Joined<T, U>> > 1)
    co_return joined;
}

template <class T, class U>
asio::awaitable<std::variant<typename detail::Gives<T>::Alternative, typename detail::Gives<U>::Alternative>>
operator||(asio::awaitable<T> a, asio::awaitable<U> b) {
  using Either = std::variant<typename detail::Gives<T>::Alternative, typename detail::Gives<U>::Alternative>;
  detail::Gives<T> from_a;
  detail::Gives<U> from_b;
  if (co_await first(detail::keep(std::move(a), from_a), detail::keep(std::move(b), from_b)) == 0)
    co_return Either(std::in_place_index<0>, from_a.alternative());
  co_return Either(std::in_place_index<1>, from_b.alternative());
}

struct SocketPair {
  tcp::socket near;  // connected
  tcp::socket far;   // accepted
};
asio::awaitable<SocketPair> socket_pair(const char* address = "127.0.0.1");

asio::awaitable<std::string> read_exactly(tcp::socket& socket, std::size_t size);

// Everything up to the end; `error` is eof for an ordinary one, connection_reset for a reset.
struct Rest {
  std::string text;
  error_code error;
};
asio::awaitable<Rest> read_all(tcp::socket& socket);

asio::awaitable<void> write(tcp::socket& socket, std::string text);

void reset(tcp::socket& socket);

// All of it, then the end.
asio::awaitable<std::size_t> send_and_end(tcp::socket& socket, std::string text);

// Bytes that no short period repeats, so that a lost or doubled piece shows.
std::string pattern(std::size_t size, std::uint32_t seed = 1);

}  // namespace longhaul::testing
