// SPDX-License-Identifier: Apache-2.0
// Small things counted and timed: `connects` makes connections as fast as they are answered, `exchanges`
// sends a few bytes to and fro over one connection.
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "loads.h"
#include "sockets.h"

namespace bench {
namespace {

double percentile_us(const std::vector<std::int64_t>& sorted_ns, double share) {
  if (sorted_ns.empty()) return 0;
  auto index = static_cast<std::size_t>(share * static_cast<double>(sorted_ns.size() - 1) + 0.5);
  return static_cast<double>(sorted_ns[index]) / 1e3;
}

// One place of those that are busy at once: one connection after the other.
struct Caller {
  Descriptor socket;
  std::int64_t began_ns = 0;
  bool sent = false;
};

class Callers {
 public:
  Callers(const Words& words) : ports_(words.ports("ports")), callers_(words.number("at_once")) {
    for (std::uint16_t port : ports_) to_.push_back(parse_address(words.text("to"), port));
    for (const std::string& address : words.list("from")) from_.push_back(parse_address(address, 0));
  }

  void run(double seconds) {
    began_ns_ = now_ns();
    const std::int64_t until = began_ns_ + static_cast<std::int64_t>(seconds * 1e9);
    for (std::size_t i = 0; i < callers_.size(); ++i) call(i);
    std::vector<epoll_event> ready(256);
    while (now_ns() < until) {
      int count = epoll_wait(loop_.get(), ready.data(), static_cast<int>(ready.size()), 100);
      if (count < 0 && errno != EINTR) fail("epoll_wait");
      for (int i = 0; i < count; ++i) go_on(ready[static_cast<std::size_t>(i)].data.u64);
    }
    ended_ns_ = now_ns();
  }

  void print() {
    std::sort(took_ns_.begin(), took_ns_.end());
    std::printf("{\"done\": %zu, \"failed\": %zu, \"seconds\": %.6f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
                took_ns_.size(), failed_, static_cast<double>(ended_ns_ - began_ns_) / 1e9,
                percentile_us(took_ns_, 0.5), percentile_us(took_ns_, 0.99));
  }

 private:
  void call(std::size_t index) {
    Caller& caller = callers_[index];
    caller.began_ns = now_ns();
    caller.sent = false;
    const Address* from = from_.empty() ? nullptr : &from_[next_ % from_.size()];
    // Ports move on only after every address had its turn, so that every pair of them comes up.
    const Address& to = to_[(from_.empty() ? next_ : next_ / from_.size()) % to_.size()];
    ++next_;
    caller.socket = start_connect(to, from);
    epoll_event event{.events = EPOLLOUT, .data = {.u64 = index}};
    if (epoll_ctl(loop_.get(), EPOLL_CTL_ADD, caller.socket.get(), &event) != 0) fail("epoll_ctl");
  }

  void go_on(std::size_t index) {
    Caller& caller = callers_[index];
    if (!caller.sent) {
      if (send(caller.socket.get(), "?", 1, 0) != 1) return end(index, false);
      caller.sent = true;
      epoll_event event{.events = EPOLLIN, .data = {.u64 = index}};
      if (epoll_ctl(loop_.get(), EPOLL_CTL_MOD, caller.socket.get(), &event) != 0) fail("epoll_ctl");
      return;
    }
    char byte = 0;
    ssize_t got = recv(caller.socket.get(), &byte, 1, 0);
    if (got < 0 && errno == EAGAIN) return;
    end(index, got == 1 && byte == '?');
  }

  void end(std::size_t index, bool good) {
    Caller& caller = callers_[index];
    if (good)
      took_ns_.push_back(now_ns() - caller.began_ns);
    else if (++failed_ > 10'000)
      throw std::runtime_error("10,000 connections failed");
    caller.socket.close();
    call(index);
  }

  std::vector<std::uint16_t> ports_;
  std::vector<Address> to_;
  std::vector<Address> from_;
  std::vector<Caller> callers_;
  Descriptor loop_{epoll_create1(EPOLL_CLOEXEC)};
  std::vector<std::int64_t> took_ns_;
  std::size_t next_ = 0;
  std::size_t failed_ = 0;
  std::int64_t began_ns_ = 0;
  std::int64_t ended_ns_ = 0;
};

}  // namespace

void connects(const Words& words) {
  Callers callers(words);
  callers.run(words.real("seconds"));
  callers.print();
}

void exchanges(const Words& words) {
  Descriptor socket =
      connect_to(parse_address(words.text("to"), static_cast<std::uint16_t>(words.number("port"))));
  const std::int64_t warm = now_ns() + 200'000'000;
  const std::int64_t until = warm + static_cast<std::int64_t>(words.real("seconds") * 1e9);
  std::vector<std::int64_t> took_ns;
  std::vector<char> question(words.number("size", 1), '?'), answer(question.size());
  for (std::uint64_t number = 0;; ++number) {
    // What a protocol's small messages look like: mostly the same words, and a number.
    if (question.size() >= 40)
      std::snprintf(question.data(), question.size(), "GET /object/%020llu HTTP/1.1",
                    static_cast<unsigned long long>(number));
    const std::int64_t began = now_ns();
    if (began > until) break;
    if (send(socket.get(), question.data(), question.size(), 0) != static_cast<ssize_t>(question.size()))
      fail("send");
    if (recv(socket.get(), answer.data(), answer.size(), MSG_WAITALL) != static_cast<ssize_t>(answer.size()))
      fail("recv");
    if (answer != question) throw std::runtime_error("wrong bytes came back");
    if (began > warm) took_ns.push_back(now_ns() - began);
  }
  std::sort(took_ns.begin(), took_ns.end());
  std::printf("{\"done\": %zu, \"p50_us\": %.2f, \"p90_us\": %.2f, \"p99_us\": %.2f, \"most_us\": %.2f}\n",
              took_ns.size(), percentile_us(took_ns, 0.5), percentile_us(took_ns, 0.9),
              percentile_us(took_ns, 0.99), percentile_us(took_ns, 1));
}

}  // namespace bench
