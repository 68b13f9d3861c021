// SPDX-License-Identifier: Apache-2.0
// The loop. It sleeps to the nanosecond in epoll_pwait2 and polls only while more is due at once, so an idle
// line costs nothing.
#include "tools/wan/forwarder.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <csignal>
#include <optional>
#include <stdexcept>

#include "tools/wan/clock.h"
#include "tools/wan/control.h"
#include "tools/wan/descriptor.h"

namespace longhaul::wan {
namespace {

using namespace std::chrono_literals;

// With this little left until the next departure, going to sleep and waking up would take longer than it.
constexpr Duration kNotWorthSleeping = 5us;
constexpr Duration kLookAround = 2ms;  // how long a busy line may ignore commands and signals

std::uint64_t back_seed(std::uint64_t seed) { return ~seed; }  // so that the directions do not lose in step

std::string error_json(std::string_view sentence) {
  return boost::json::serialize(boost::json::object{{"error", sentence}});
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void watch(int epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  must(::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event), "epoll");
}

// Readable when an interface of this namespace has changed. A port's own error tells too little: it comes
// when the interface goes down, before it can be known whether it will be removed.
Descriptor interface_news() {
  Descriptor news{
      must(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), "netlink")};
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  must(::bind(news.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "netlink");
  return news;
}

void forget(const Descriptor& news) {
  std::array<char, 64>
      beginning;  // the rest of a message is cut off: that something changed is all that counts
  while (::recv(news.get(), beginning.data(), beginning.size(), 0) >= 0 || errno == ENOBUFS) {
  }
}

// A busy line wakes up for every packet. This bounds it to one round in 30 µs on average, which costs packets
// up to as much lateness and saves up to half of the CPU; a line with less to do never waits here.
class Rounds {
 public:
  void begin(TimePoint now) { next_ = std::max(next_, now - kBurst * kSpacing) + kSpacing; }
  void wait() const {
    const Duration left = next_ - clock_now();
    if (left <= 0ns) return;
    const timespec pause{0, static_cast<long>(std::min<Duration>(left, kSpacing).count())};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
  }

 private:
  static constexpr Duration kSpacing = 30us;
  static constexpr int kBurst = 16;
  TimePoint next_{};
};

}  // namespace

Forwarder::Forwarder(std::unique_ptr<Port> a, std::unique_ptr<Port> b, const LineSettings& settings)
    : a_(std::move(a)),
      b_(std::move(b)),
      settings_(settings),
      a_to_b_(*a_, *b_, resolve(settings).a_to_b, settings.seed),
      b_to_a_(*b_, *a_, resolve(settings).b_to_a, back_seed(settings.seed)),
      counting_since_(clock_now()) {}

void Forwarder::run(ControlServer* control) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // the default of 50 µs would be added to every wake-up
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  const Descriptor signals{must(::signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd")};
  const Descriptor epoll{must(::epoll_create1(EPOLL_CLOEXEC), "epoll")};
  watch(epoll.get(), signals.get());
  watch(epoll.get(), a_->descriptor());
  watch(epoll.get(), b_->descriptor());
  const Descriptor news = interface_news();
  watch(epoll.get(), news.get());
  if (control) watch(epoll.get(), control->descriptor());

  Rounds rounds;
  TimePoint looked_around = clock_now();
  for (;;) {
    const TimePoint now = clock_now();  // before the frames are read: what is due by now has been read then
    rounds.begin(now);
    if (player_) {
      LineSettings changed = settings_;
      if (player_->apply_due(changed, now)) use(changed);
    }
    bool more = a_to_b_.take_in();
    more |= b_to_a_.take_in();
    more |= a_to_b_.send_due(now);
    more |= b_to_a_.send_due(now);

    if (!more) rounds.wait();
    std::optional<TimePoint> next = a_to_b_.next_wakeup();
    if (const auto other = b_to_a_.next_wakeup(); other && (!next || *other < *next)) next = other;
    if (const auto step = player_ ? player_->next() : std::nullopt; step && (!next || *step < *next))
      next = step;
    const Duration left = more   ? Duration{0}
                          : next ? std::max(Duration{0}, *next - clock_now())
                                 : Duration::max();
    if (left < kNotWorthSleeping && now - looked_around < kLookAround) continue;

    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    std::array<epoll_event, 8> events;
    const int ready =
        ::epoll_pwait2(epoll.get(), events.data(), events.size(), next || more ? &timeout : nullptr, nullptr);
    if (ready < 0 && errno != EINTR) must(-1, "epoll_pwait2");
    looked_around = clock_now();
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(ready, 0)))) {
      if (event.data.fd == signals.get()) return;
      if (control && event.data.fd == control->descriptor())
        control->serve([this](std::string_view command) { return execute(command); });
      if (event.data.fd == news.get()) forget(news);
      if (event.data.fd != news.get() && (event.events & (EPOLLERR | EPOLLHUP)) == 0) continue;
      for (Port* port : {a_.get(), b_.get()})
        if (!port->still_there()) throw std::runtime_error("interface " + port->name() + " has disappeared");
    }
  }
}

std::string Forwarder::execute(std::string_view command) {
  if (command == "stats" || command == "stats reset") {
    const std::string answer = boost::json::serialize(stats());
    if (command != "stats") reset_counters();
    return answer;
  }
  if (command.starts_with("set ")) return set(command.substr(4));
  if (command.starts_with("lose ")) return lose(command.substr(5));
  return error_json("unknown command \"" + std::string(command) + "\"");
}

LineConfig Forwarder::use(const LineSettings& settings) {
  settings_ = settings;
  const LineConfig config = resolve(settings_);
  const TimePoint now = clock_now();
  a_to_b_.change(now, config.a_to_b);
  b_to_a_.change(now, config.b_to_a);
  return config;
}

std::string Forwarder::set(std::string_view assignments) {
  LineSettings changed = settings_;
  bool reseed = false;
  while (!assignments.empty()) {
    const auto space = assignments.find(' ');
    const std::string_view assignment = assignments.substr(0, space);
    assignments.remove_prefix(space == std::string_view::npos ? assignments.size() : space + 1);
    if (assignment.empty()) continue;
    const auto equals = assignment.find('=');
    if (equals == std::string_view::npos)
      return error_json("\"" + std::string(assignment) + "\" is not NAME=VALUE");
    if (const auto error = apply(changed, assignment.substr(0, equals), assignment.substr(equals + 1)))
      return error_json(*error);
    reseed |= assignment.starts_with("seed=");
  }
  const LineConfig config = use(changed);
  if (reseed) {
    a_to_b_.reseed(settings_.seed);
    b_to_a_.reseed(back_seed(settings_.seed));
  }
  return boost::json::serialize(
      boost::json::object{{"a_to_b", to_json(config.a_to_b)}, {"b_to_a", to_json(config.b_to_a)}});
}

std::string Forwarder::lose(std::string_view assignments) {
  std::array<std::optional<std::uint32_t>, 2> packets;  // a to b, b to a
  while (!assignments.empty()) {
    const auto space = assignments.find(' ');
    const std::string_view assignment = assignments.substr(0, space);
    assignments.remove_prefix(space == std::string_view::npos ? assignments.size() : space + 1);
    if (assignment.empty()) continue;
    const auto equals = std::min(assignment.find('='), assignment.size());
    const std::string_view way = assignment.substr(0, equals);
    const std::string_view count = assignment.substr(std::min(equals + 1, assignment.size()));
    std::uint32_t number = 0;
    const auto parsed = std::from_chars(count.data(), count.data() + count.size(), number);
    if ((way != "a-to-b" && way != "b-to-a") || parsed.ec != std::errc{} ||
        parsed.ptr != count.data() + count.size())
      return error_json("\"" + std::string(assignment) + "\" is not a-to-b=PACKETS or b-to-a=PACKETS");
    packets[way == "a-to-b" ? 0 : 1] = number;
  }
  if (packets[0]) a_to_b_.lose_next(*packets[0]);
  if (packets[1]) b_to_a_.lose_next(*packets[1]);
  return boost::json::serialize(
      boost::json::object{{"a_to_b", packets[0].value_or(0)}, {"b_to_a", packets[1].value_or(0)}});
}

boost::json::object Forwarder::stats() {
  const TimePoint now = clock_now();
  const LineConfig config = resolve(settings_);
  boost::json::object forth = a_to_b_.to_json(now);
  boost::json::object back = b_to_a_.to_json(now);
  forth["line"] = to_json(config.a_to_b);
  back["line"] = to_json(config.b_to_a);
  return {{"seconds", std::chrono::duration<double>(now - counting_since_).count()},
          {"cpu_seconds", cpu_seconds() - cpu_seconds_before_},
          {"a", a_->name()},
          {"b", b_->name()},
          {"a_to_b", std::move(forth)},
          {"b_to_a", std::move(back)}};
}

void Forwarder::reset_counters() {
  counting_since_ = clock_now();
  cpu_seconds_before_ = cpu_seconds();
  a_to_b_.reset_counters(counting_since_);
  b_to_a_.reset_counters(counting_since_);
  a_->reset_counters();
  b_->reset_counters();
}

}  // namespace longhaul::wan
