// SPDX-License-Identifier: Apache-2.0
// Resolves names without blocking the loop: getaddrinfo on its own threads, with a time limit.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "codecs/result.h"

namespace longhaul::net {

// Asio's own resolver has one thread for the whole process, so one dead name server would block every query.
// Here, a look-up that hangs blocks one of kThreads threads, and the caller waits at most for its limit.
class NameResolver {
 public:
  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kWaiting = 256;  // look-ups in the queue; more are refused at once

  NameResolver();
  ~NameResolver();  // does not wait for look-ups in progress
  NameResolver(const NameResolver&) = delete;
  NameResolver& operator=(const NameResolver&) = delete;

  // Every address of the name, in the order that the system prefers (RFC 6724); never empty. An address
  // resolves to itself. Completes on the caller's executor. Errors: asio::error::host_not_found,
  // host_not_found_try_again, timed_out, no_buffer_space.
  boost::asio::awaitable<Result<std::vector<boost::asio::ip::address>>> resolve(
      std::string name, std::chrono::milliseconds limit);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // also held by the threads, which may outlive this object
};

}  // namespace longhaul::net
