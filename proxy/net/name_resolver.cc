// SPDX-License-Identifier: Apache-2.0
#include "proxy/net/name_resolver.h"

#include <netdb.h>
#include <netinet/in.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

namespace longhaul::net {

namespace asio = boost::asio;
using Addresses = std::vector<asio::ip::address>;

namespace {

Result<Addresses> look_up(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (status == EAI_AGAIN) return make_error_code(asio::error::host_not_found_try_again);
  if (status != 0) return make_error_code(asio::error::host_not_found);
  Addresses addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET) {
      sockaddr_in v4;
      std::memcpy(&v4, entry->ai_addr, sizeof v4);
      addresses.emplace_back(asio::ip::address_v4(ntohl(v4.sin_addr.s_addr)));
    } else if (entry->ai_family == AF_INET6) {
      sockaddr_in6 v6;
      std::memcpy(&v6, entry->ai_addr, sizeof v6);
      asio::ip::address_v6::bytes_type bytes;
      std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
      addresses.emplace_back(asio::ip::address_v6(bytes, v6.sin6_scope_id));
    }
  }
  freeaddrinfo(list);
  if (addresses.empty()) return make_error_code(asio::error::host_not_found);
  return addresses;
}

// One query, in the frame of the waiting coroutine. Only accessed on the event loop.
struct Question {
  explicit Question(const asio::any_io_executor& executor, std::chrono::milliseconds limit)
      : done(executor, limit) {}
  asio::steady_timer done;  // cancelled when the result arrives
  std::optional<Result<Addresses>> answer;
};

// The same query as a thread sees it.
struct Job {
  std::uint64_t id;
  std::string name;
  asio::any_io_executor executor;
};

}  // namespace

struct NameResolver::Shared : std::enable_shared_from_this<NameResolver::Shared> {
  std::unordered_map<std::uint64_t, Question*> open;  // only used on the loop
  std::uint64_t next_id = 0;                          // only used on the loop

  std::mutex mutex;  // guards all members below
  std::condition_variable asked;
  std::deque<Job> waiting;
  std::size_t threads = 0;
  std::size_t idle = 0;
  bool closed = false;  // the loop may no longer exist, so nothing may be posted to it

  bool ask(Job job) {
    const std::lock_guard lock(mutex);
    if (waiting.size() >= kWaiting) return false;
    waiting.push_back(std::move(job));
    if (idle >= waiting.size()) {
      asked.notify_one();
    } else if (threads < kThreads) {
      ++threads;
      std::thread(work, shared_from_this())
          .detach();  // getaddrinfo cannot be interrupted, so the thread is not joined
    }
    return true;
  }

  void deliver(std::uint64_t id, Result<Addresses> answer) {
    const auto found = open.find(id);
    if (found == open.end()) return;  // the caller stopped waiting
    found->second->answer = std::move(answer);
    found->second->done.cancel();
  }

  static void work(std::shared_ptr<Shared> self) {
    std::unique_lock lock(self->mutex);
    for (;;) {
      ++self->idle;
      self->asked.wait(lock, [&] { return self->closed || !self->waiting.empty(); });
      --self->idle;
      if (self->closed) return;
      const Job job = std::move(self->waiting.front());
      self->waiting.pop_front();
      lock.unlock();
      Result<Addresses> answer = look_up(job.name);
      lock.lock();
      if (self->closed) return;
      asio::post(job.executor, [self, id = job.id, answer = std::move(answer)]() mutable {
        self->deliver(id, std::move(answer));
      });
    }
  }
};

NameResolver::NameResolver() : shared_(std::make_shared<Shared>()) {}

NameResolver::~NameResolver() {
  const std::lock_guard lock(shared_->mutex);
  shared_->closed = true;
  shared_->waiting.clear();
  shared_->asked.notify_all();
}

asio::awaitable<Result<Addresses>> NameResolver::resolve(std::string name, std::chrono::milliseconds limit) {
  boost::system::error_code no_literal;
  if (const auto literal = asio::ip::make_address(name, no_literal); !no_literal)
    co_return Addresses{literal};
  const std::shared_ptr<Shared> shared = shared_;
  const auto executor = co_await asio::this_coro::executor;
  Question question(executor, limit);
  const std::uint64_t id = shared->next_id++;
  const struct Registered {
    Registered(Shared& to, std::uint64_t as, Question& what) : shared(to), id(as) { shared.open[id] = &what; }
    ~Registered() { shared.open.erase(id); }
    Shared& shared;
    const std::uint64_t id;
  } registered(*shared, id, question);
  if (!shared->ask({id, std::move(name), executor})) co_return make_error_code(asio::error::no_buffer_space);
  co_await question.done.async_wait(asio::as_tuple(asio::use_awaitable));
  if (!question.answer) co_return make_error_code(asio::error::timed_out);
  co_return std::move(*question.answer);
}

}  // namespace longhaul::net
