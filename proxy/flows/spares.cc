// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/spares.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cerrno>

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
namespace {

// Memory of a connection with its socket and timer, and of a habit, with their nodes and names.
constexpr std::uint64_t kSpareBytes = 1024, kHabitBytes = 512;

// The server has neither closed the connection nor sent anything.
bool is_untouched(tcp::socket& socket) {
  char byte = 0;
  const ssize_t size = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

std::optional<Dialled> Spares::take(const Key& key, const DialRequest& request) {
  const auto found = spares_.find(key);
  if (found == spares_.end() || !found->second.dialled) return std::nullopt;
  Dialled dialled = std::move(*found->second.dialled);
  spares_.erase(found);
  count();
  error_code ignored;
  dialled.socket.cancel(ignored);
  const bool is_allowed = dialer_.may_dial(request, dialled.server.address());
  if (!is_allowed || !is_untouched(dialled.socket)) {
    ++counters_.lost;
    return std::nullopt;
  }
  ++counters_.used;
  if (const auto habit = habits_.find(key); habit != habits_.end()) habit->second.left_one_unused = false;
  return dialled;
}

void Spares::client_connected(Key key, DialRequest request, std::chrono::microseconds round_trip) {
  const bool is_wanted = round_trip >= kFarAway && is_likely_used(key) && !spares_.contains(key);
  count();
  if (!is_wanted || counted_.is_short() || !has_room(key)) return;
  // The client's next port is not known.
  if (request.client) request.client->port(0);
  const std::uint64_t number = next_number_++;
  spares_.emplace(key, io_).first->second.number = number;
  count();
  asio::co_spawn(io_, make(self_, std::move(key), number, std::move(request)), asio::detached);
}

// After an unused connection, one is made only for a client that connects often.
bool Spares::is_likely_used(const Key& key) {
  const auto now = Clock::now();
  if (counted_.is_short() && !habits_.contains(key)) return false;
  if (habits_.size() >= kMostHabits && !habits_.contains(key)) {
    if (now - swept_at_ < kLifetime) return false;
    swept_at_ = now;
    std::erase_if(habits_, [&](const auto& each) { return now - each.second.last_connected > kHabitsKept; });
    if (habits_.size() >= kMostHabits) return false;
  }
  Habit& habit = habits_[key];
  const bool is_quick = now - std::exchange(habit.last_connected, now) < kLifetime;
  return is_quick || !habit.left_one_unused;
}

bool Spares::has_room(const Key& key) const {
  std::size_t of_client = 0, of_server = 0;
  for (const auto& [other, spare] : spares_) {
    of_client += other.peer == key.peer && other.client == key.client;
    of_server += other.destination == key.destination;
  }
  return spares_.size() < kMost && of_client < kMostOfClient && of_server < kMostOfServer;
}

Spares::Held::iterator Spares::find(const Key& key, std::uint64_t number) {
  const auto found = spares_.find(key);
  return found != spares_.end() && found->second.number == number ? found : spares_.end();
}

asio::awaitable<void> Spares::make(std::shared_ptr<Spares*> self, Key key, std::uint64_t number,
                                   DialRequest request) {
  Dialled dialled = co_await (*self)->dialer_.dial(std::move(request));
  if (!*self) co_return;
  Spares& spares = **self;
  const auto at = spares.find(key, number);
  if (at == spares.spares_.end()) co_return;  // cleared meanwhile
  if (!dialled.connected()) {
    spares.spares_.erase(at);
    spares.count();
    co_return;
  }
  spares.keep(at, std::move(dialled));
}

void Spares::keep(Held::iterator at, Dialled dialled) {
  ++counters_.made;
  Spare& spare = at->second;
  spare.dialled.emplace(std::move(dialled));
  const auto drop = [self = self_, key = at->first, number = spare.number](error_code error,
                                                                           std::uint64_t Counters::*why) {
    if (error || !*self) return;
    Spares& spares = **self;
    const auto found = spares.find(key, number);
    if (found == spares.spares_.end()) return;
    ++(spares.counters_.*why);
    const auto habit = spares.habits_.find(key);
    if (why == &Counters::unused && habit != spares.habits_.end()) habit->second.left_one_unused = true;
    spares.spares_.erase(found);
    spares.count();
  };
  spare.dialled->socket.async_wait(tcp::socket::wait_read,
                                   [drop](error_code error) { drop(error, &Counters::lost); });
  spare.timer.expires_after(kLifetime);
  spare.timer.async_wait([drop](error_code error) { drop(error, &Counters::unused); });
}

bool Spares::clear() {
  const bool had_any = !spares_.empty();
  spares_.clear();
  count();
  return had_any;
}

void Spares::count() { counted_.set(spares_.size() * kSpareBytes + habits_.size() * kHabitBytes); }

}  // namespace longhaul::flows
