// SPDX-License-Identifier: Apache-2.0
// Callers wait inside until they have shown something, within bounds of number and time.
#include "tools/measuring/door.h"

#include <sys/socket.h>

#include <array>

#include "tools/measuring/trouble.h"

namespace longhaul::measuring {
namespace {

constexpr std::size_t kMostCallers = 64;  // of more the oldest goes
constexpr std::chrono::seconds kCallersPatience{
    60};  // the sender's bytes come at once, or after some repairs

}  // namespace

void Door::watch(std::vector<pollfd>& into) const {
  into.push_back({listener_, POLLIN, 0});
  for (const Caller& caller : callers_) into.push_back({caller.socket.get(), POLLIN, 0});
}

void Door::accept_all(TimePoint now) {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) {
      callers_.push_back({wan::Descriptor{socket}, now, {}});
      if (callers_.size() > kMostCallers) {
        callers_.pop_front();
        ++strangers_;
      }
      continue;
    }
    if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO) continue;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) return;
    if (errno == EMFILE || errno == ENFILE) throw Trouble("too many open files on this host");
    wan::must(-1, "accept");
  }
}

std::optional<Door::Admitted> Door::look(TimePoint now) {
  accept_all(now);
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    std::array<std::byte, kPassBytes> piece;
    const auto got = ::recv(caller->socket.get(), piece.data(), caller->reader.wanted(), MSG_DONTWAIT);
    auto verdict = PassReader::Verdict::more;
    if (got > 0)
      verdict = caller->reader.feed(Bytes(piece).first(static_cast<std::size_t>(got)), pass_);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR) || now - caller->accepted > kCallersPatience)
      verdict = PassReader::Verdict::wrong;
    if (verdict == PassReader::Verdict::right) {
      Admitted admitted{std::move(caller->socket), caller->accepted};
      callers_.erase(caller);
      return admitted;
    }
    if (verdict == PassReader::Verdict::wrong) {
      ++strangers_;
      caller = callers_.erase(caller);
    } else {
      ++caller;
    }
  }
  return std::nullopt;
}

}  // namespace longhaul::measuring
