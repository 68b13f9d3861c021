// SPDX-License-Identifier: Apache-2.0
// See plain.h.
#include "tools/ttcp/plain.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <thread>

#include "tools/ttcp/send.h"

namespace longhaul::ttcp {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[400];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

struct Transfer {
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;
  TimePoint began = Clock::now();
  std::optional<TimePoint> ended;
};

// Memory at the wished place within the wished alignment (-A, -O).
class Buffer {
 public:
  explicit Buffer(const PlainOptions& options)
      : memory_(std::size_t{options.buffer_bytes} + options.alignment + options.offset) {
    void* place = memory_.data();
    std::size_t room = memory_.size();
    if (options.alignment > 1) std::align(options.alignment, options.buffer_bytes, place, room);
    view_ = {static_cast<std::byte*>(place) + options.offset, options.buffer_bytes};
  }
  std::span<std::byte> get() const { return view_; }

 private:
  std::vector<std::byte> memory_;
  std::span<std::byte> view_;
};

class Plain {
 public:
  Plain(const PlainOptions& options, const Stop& stop) : options_(options), stop_(stop) {}

  void transmit();
  void receive();

 private:
  void say(const std::string& sentence) const {
    std::cerr << (options_.transmit ? "ttcp-t: " : "ttcp-r: ") + sentence + "\n" << std::flush;
  }
  void say_statistics(const Transfer& transfer) const;
  void transmit_all(int socket, Transfer& transfer);
  std::size_t next_block(std::span<std::byte> buffer, std::uint64_t number);
  void receive_stream(int socket, Transfer& transfer);
  void receive_streams(int listener);
  void receive_datagrams(int socket);
  void consume(Bytes bytes) const;

  const PlainOptions& options_;
  const Stop& stop_;
};

void Plain::say_statistics(const Transfer& transfer) const {
  const double real =
      std::chrono::duration<double>(transfer.ended.value_or(Clock::now()) - transfer.began).count();
  const double least = std::max(real, 1e-6);
  const auto calls = static_cast<double>(std::max<std::uint64_t>(transfer.calls, 1));
  say(std::to_string(transfer.bytes) + format(" bytes in %.2f real seconds = ", real) +
      to_amount(static_cast<double>(transfer.bytes) / least, options_.format) + "/sec +++");
  say(std::to_string(transfer.calls) +
      format(" I/O calls, msec/call = %.2f, calls/sec = %.2f", 1000 * real / calls, calls / least));
  if (!options_.verbose) return;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  const double user = of(usage.ru_utime);
  const double system = of(usage.ru_stime);
  say(format("%.2fuser %.2fsys %.2freal %.0f%% %ldmaxrss %ld+%ldcsw", user, system, real,
             100 * (user + system) / least, usage.ru_maxrss, usage.ru_nvcsw, usage.ru_nivcsw));
}

// -- transmitting

std::size_t Plain::next_block(std::span<std::byte> buffer, std::uint64_t number) {
  if (options_.pattern) return options_.continuous || number < options_.buffers ? buffer.size() : 0;
  // A datagram as small as a mark would be taken for one.
  const std::size_t least = options_.protocol == Protocol::udp ? kClassicMarkBytes + 1 : 1;
  std::size_t held = 0;
  while (held < least) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    wait({&input, 1}, std::nullopt, stop_);
    const auto got = ::read(STDIN_FILENO, buffer.data() + held, buffer.size() - held);
    if (got == 0) break;
    if (got > 0)
      held += static_cast<std::size_t>(got);
    else if (errno != EINTR && errno != EAGAIN)
      throw measuring::Trouble("cannot read standard input: " + std::generic_category().message(errno));
  }
  if (held > 0 && held < least)
    throw measuring::Trouble("the last " + std::to_string(held) +
                             " bytes were not sent: ttcp treats datagrams of up to 4 bytes as end marks");
  return held;
}

void Plain::transmit_all(int socket, Transfer& transfer) {
  const bool is_udp = options_.protocol == Protocol::udp;
  const Buffer memory{options_};
  const auto buffer = memory.get();
  if (options_.pattern) fill_with_pattern(buffer);
  const Bytes mark{buffer.data(), kClassicMarkBytes};
  if (is_udp) send_datagram(socket, mark, stop_);
  transfer.began = Clock::now();
  for (std::uint64_t number = 0; const std::size_t size = next_block(buffer, number); ++number) {
    stop_.check();
    if (options_.write_delay_ms > 0 && number > 0)
      sleep_until(Clock::now() + std::chrono::milliseconds{options_.write_delay_ms}, stop_);
    if (is_udp) {
      send_datagram(socket, {buffer.data(), size}, stop_);
      ++transfer.calls;
    } else {
      transfer.calls += send_all(socket, {buffer.data(), size}, stop_);
    }
    transfer.bytes += size;
  }
  transfer.ended = Clock::now();
}

void Plain::transmit() {
  const bool is_udp = options_.protocol == Protocol::udp;
  const auto addresses = resolve(options_.host, options_.port, options_.protocol, options_.family);
  std::string buffers = options_.pattern ? ", nbuf=" + std::to_string(options_.buffers) : "";
  say(format("buflen=%u", options_.buffer_bytes) + buffers +
      format(", align=%u/%u, port=%u  %s  -> ", options_.alignment, options_.offset, unsigned{options_.port},
             is_udp ? "udp" : "tcp") +
      options_.host);
  if (!options_.pattern && ::isatty(STDIN_FILENO) == 1)
    say("sends standard input until Ctrl-D; -s sends a pattern instead");
  const wan::Descriptor socket = is_udp ? connect_udp(addresses.front(), options_.socket)
                                        : connect_tcp(addresses, options_.socket, options_.patience, stop_);
  if (!is_udp) say("connect to " + Address::peer_of(socket.get()).to_string());
  Transfer transfer;
  const auto end_datagrams = [&] {
    for (int i = 0; i < 5; ++i) {
      const std::array<std::byte, kClassicMarkBytes> mark{};
      [[maybe_unused]] const auto sent = ::send(socket.get(), mark.data(), mark.size(), MSG_NOSIGNAL);
      std::this_thread::sleep_for(10ms);  // five in a row would be lost together
    }
  };
  try {
    transmit_all(socket.get(), transfer);
    if (is_udp) sleep_until(Clock::now() + options_.pause, stop_);
  } catch (const Interrupted&) {
    if (is_udp) end_datagrams();
    say("interrupted; the results cover the time until then");
    say_statistics(transfer);
    throw;
  } catch (const std::runtime_error&) {
    say_statistics(transfer);
    throw;
  }
  if (is_udp) end_datagrams();
  say_statistics(transfer);
}

// -- receiving

void Plain::consume(Bytes bytes) const {
  if (options_.touch) {
    // Each byte is read, as a program would that does something with it.
    [[maybe_unused]] volatile unsigned sum = std::accumulate(
        bytes.begin(), bytes.end(), 0u,
        [](unsigned so_far, std::byte byte) { return so_far + std::to_integer<unsigned>(byte); });
  }
  if (options_.pattern) return;
  while (!bytes.empty()) {
    const auto written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    else if (errno == EAGAIN)
      wait_writable(STDOUT_FILENO, std::nullopt, stop_);
    else if (errno != EINTR)
      throw measuring::Trouble("cannot write standard output: " + std::generic_category().message(errno));
  }
}

void Plain::receive_stream(int socket, Transfer& transfer) {
  const Buffer memory{options_};
  const auto buffer = memory.get();
  transfer.began = Clock::now();
  std::size_t held = 0;  // with -B less than a block waits for the rest
  for (;;) {
    stop_.check();
    const auto got = ::recv(socket, buffer.data() + held, buffer.size() - held, 0);
    if (got > 0) {
      ++transfer.calls;
      transfer.bytes += static_cast<std::uint64_t>(got);
      held += static_cast<std::size_t>(got);
      if (options_.full_blocks && held < buffer.size()) continue;
      consume({buffer.data(), held});
      held = 0;
    } else if (got == 0) {
      break;
    } else if (errno == EAGAIN) {
      wait_readable(socket, std::nullopt, stop_);
    } else if (errno != EINTR) {
      throw PeerGone("the sender failed: " + std::generic_category().message(errno));
    }
  }
  consume({buffer.data(), held});
  transfer.ended = Clock::now();
}

void Plain::receive_streams(int listener) {
  struct Running {
    std::atomic<bool> is_over = false;
    std::jthread thread;
  };
  std::list<Running> running;  // -R; each sees the stop by itself
  for (;;) {
    auto socket = accept_one(listener, std::nullopt, stop_);
    const auto handle = [this](const wan::Descriptor& from) {
      Transfer transfer;
      try {
        say("accept from " + Address::peer_of(from.get()).to_string());
        receive_stream(from.get(), transfer);
      } catch (const Interrupted&) {
        say("interrupted; the results cover the time until then");
        say_statistics(transfer);
        throw;
      } catch (const PeerGone& gone) {
        if (!options_.continuous) say_statistics(transfer);
        if (!options_.continuous) throw;
        say(gone.what());
      }
      say_statistics(transfer);
    };
    if (options_.concurrent) {
      running.remove_if([](const Running& each) { return each.is_over.load(); });
      Running& one = running.emplace_back();
      one.thread = std::jthread([handle, from = std::move(socket), &is_over = one.is_over, this] {
        try {
          handle(from);
        } catch (const Interrupted&) {
        } catch (const std::exception& error) {
          say(error.what());
        }
        is_over = true;
      });
    } else {
      handle(socket);
      if (!options_.continuous) return;
    }
  }
}

// One socket receives from all senders: with -R each sender is counted separately.
void Plain::receive_datagrams(int socket) {
  struct Sender {
    ClassicMarks marks;
    Transfer transfer;
    TimePoint last = Clock::now();
  };
  std::map<std::string, Sender> senders;
  const Buffer memory{options_};
  const auto buffer = memory.get();
  const auto finish = [&](std::map<std::string, Sender>::iterator at) {
    if (options_.concurrent) say("from " + at->first + ":");
    if (!at->second.transfer.ended) at->second.transfer.ended = at->second.last;
    say_statistics(at->second.transfer);
    return senders.erase(at);
  };
  const auto wait_for_datagram = [&] {
    std::optional<TimePoint> deadline;
    for (const auto& [name, sender] : senders)
      deadline = std::min(deadline.value_or(TimePoint::max()), sender.last + options_.silence);
    try {
      wait_readable(socket, deadline, stop_);
    } catch (const Interrupted&) {
      if (!senders.empty()) say("interrupted; the results cover the time until then");
      while (!senders.empty()) finish(senders.begin());
      throw;
    }
  };
  // Marks that follow the one which ended a transfer begin no new one.
  std::map<std::string, TimePoint> done;
  for (;;) {
    bool is_over = false;
    if (stop_.is_requested()) wait_for_datagram();  // which ends it
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const auto got = ::recvfrom(socket, buffer.data(), buffer.size(), MSG_TRUNC,
                                reinterpret_cast<sockaddr*>(&from), &length);
    const int error = errno;
    const TimePoint now = Clock::now();
    if (got >= 0) {
      const std::string name =
          options_.concurrent ? Address{reinterpret_cast<sockaddr*>(&from), length}.to_string() : "";
      const auto size = static_cast<std::size_t>(got);
      const auto ended = done.find(name);
      if (size <= kClassicMarkBytes && ended != done.end() && now < ended->second + 2s) continue;
      auto& sender = senders[name];
      ++sender.transfer.calls;
      const auto said = sender.marks.on_datagram(size);
      if (said == ClassicMarks::Said::start) sender.transfer.began = now;
      if (said == ClassicMarks::Said::data) {
        sender.transfer.bytes += size;
        sender.last = now;
        consume({buffer.data(), std::min(size, buffer.size())});
      }
      if (said == ClassicMarks::Said::end) {
        finish(senders.find(name));
        done[name] = now;
        is_over = true;
      }
    } else if (error == EAGAIN) {
      wait_for_datagram();
    } else if (error != EINTR) {
      throw measuring::Trouble("cannot receive: " + std::generic_category().message(error));
    }
    for (auto at = senders.begin(); at != senders.end();) {
      if (now < at->second.last + options_.silence) {
        ++at;
        continue;
      }
      say(
          format("nothing received for %.0f s: the end marks are considered lost; the time is taken until "
                 "the last data",
                 std::chrono::duration<double>(options_.silence).count()));
      at = finish(at);
      is_over = true;
    }
    std::erase_if(done, [&](const auto& each) { return now >= each.second + 2s; });
    if (is_over && !options_.continuous) return;
  }
}

void Plain::receive() {
  const bool is_udp = options_.protocol == Protocol::udp;
  const Address here = listening_address(options_.host, options_.port, options_.protocol, options_.family);
  const wan::Descriptor socket = is_udp ? bind_udp(here, options_.socket) : listen_tcp(here, options_.socket);
  say(format("buflen=%u, align=%u/%u, port=%u  %s", options_.buffer_bytes, options_.alignment,
             options_.offset, unsigned{Address::local_of(socket.get()).port()}, is_udp ? "udp" : "tcp"));
  if (is_udp)
    receive_datagrams(socket.get());
  else
    receive_streams(socket.get());
}

}  // namespace

std::string to_amount(double bytes, char unit) {
  constexpr double kK = 1024;
  switch (unit) {
    case 'k':
      return format("%.2f Kbit", bytes * 8 / kK);
    case 'm':
      return format("%.2f Mbit", bytes * 8 / kK / kK);
    case 'g':
      return format("%.2f Gbit", bytes * 8 / kK / kK / kK);
    case 'M':
      return format("%.2f MB", bytes / kK / kK);
    case 'G':
      return format("%.2f GB", bytes / kK / kK / kK);
    default:
      return format("%.2f KB", bytes / kK);
  }
}

void run_plain(const PlainOptions& options, const Stop& stop) {
  Plain plain{options, stop};
  options.transmit ? plain.transmit() : plain.receive();
}

}  // namespace longhaul::ttcp
