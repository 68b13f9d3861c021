// SPDX-License-Identifier: Apache-2.0
// See channel.h.
#include "tools/ttcp/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>

namespace longhaul::ttcp {

using namespace std::chrono_literals;

namespace {
constexpr std::size_t kLongestGreeting = 4096;  // from a stranger
}

Channel::Channel(wan::Descriptor socket) : socket_(std::move(socket)), reader_(kLongestGreeting) {
  const auto set = [this](int level, int option, int value) {
    wan::must(::setsockopt(socket_.get(), level, option, &value, sizeof value), "setsockopt");
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that vanished is noticed in about a minute; a line that is only full is not taken for it.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

void Channel::send(const boost::json::object& message, const Stop& stop) {
  const std::string frame = measuring::encode(message);
  std::size_t at = 0;
  while (at < frame.size()) {
    const auto sent = ::send(socket_.get(), frame.data() + at, frame.size() - at, MSG_NOSIGNAL);
    if (sent >= 0) {
      at += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      if (!wait_writable(socket_.get(), std::chrono::steady_clock::now() + 60s, stop))
        throw PeerGone("the other side does not read from the control connection");
    } else if (errno != EINTR) {
      poll();  // why it closed, if it said so
      throw PeerGone("the control connection failed: " + std::generic_category().message(errno));
    }
  }
}

std::optional<boost::json::object> Channel::poll() {
  for (;;) {
    auto message = reader_.next();
    if (!message) throw PeerGone("the other side sent a message that is not of longhaul-ttcp's protocol");
    if (*message) {
      if ((*message)->contains("trouble"))
        throw PeerGone("error from the other side: " +
                       fit_to_print(measuring::text(**message, "trouble", kLongestMessage)));
      return *message;
    }
    std::array<std::byte, 4096> buffer;
    const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got > 0)
      reader_.feed({buffer.data(), static_cast<std::size_t>(got)});
    else if (got == 0)
      throw PeerGone("the other side closed the control connection");
    else if (errno == EAGAIN)
      return std::nullopt;
    else if (errno != EINTR)
      throw PeerGone("the control connection failed: " + std::generic_category().message(errno));
  }
}

void Channel::greet(measuring::Side side, const std::string& token, TimePoint deadline, const Stop& stop) {
  const std::string who = peer().to_string();
  const auto expect = [&] {
    const auto message = receive(deadline, stop);
    if (!message) throw PeerGone(who + " does not answer like longhaul-ttcp");
    return *message;
  };
  try {
    measuring::Greeting greeting{{"longhaul-ttcp", kVersion, token}, side};
    send(greeting.hello(), stop);
    greeting.read_hello(expect(), who);
    if (side == measuring::Side::dials) send(greeting.proof(), stop);
    greeting.read_proof(expect(), who);
    if (side == measuring::Side::listens) send(greeting.proof(), stop);
  } catch (const PeerGone&) {
    throw;
  } catch (const Trouble& trouble) {
    tell_trouble(trouble.what(), stop);
    throw Trouble(fit_to_print(trouble.what()));  // it names what a stranger sent
  }
  reader_.allow(kLongestMessage);
}

void Channel::tell_trouble(std::string_view sentence, const Stop& stop) {
  try {
    send({{"trouble", sentence}}, stop);
  } catch (const PeerGone&) {
  }
}

std::optional<boost::json::object> Channel::receive(TimePoint deadline, const Stop& stop) {
  for (;;) {
    if (auto message = poll()) return message;
    if (!wait_readable(socket_.get(), deadline, stop)) return std::nullopt;
  }
}

}  // namespace longhaul::ttcp
