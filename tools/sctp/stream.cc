// SPDX-License-Identifier: Apache-2.0
#include "tools/sctp/stream.h"

#include <sys/resource.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace longhaul::sctp {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr std::size_t kReadBytes = 256 * 1024;
constexpr std::chrono::seconds kPatience{60};
// On the wire: numbers of eight bytes, the most significant first. The sender says how many milliseconds it
// will last; the receiver answers bytes, microseconds, microseconds of CPU.
using Start = std::array<std::byte, 8>;
using Report = std::array<std::byte, 24>;

microseconds cpu_of_process() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + microseconds(time.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

void put(std::span<std::byte, 8> to, std::uint64_t number) {
  for (std::size_t i = 8; i-- > 0; number >>= 8) to[i] = static_cast<std::byte>(number & 0xff);
}

std::uint64_t get(std::span<const std::byte, 8> from) {
  std::uint64_t number = 0;
  for (const std::byte each : from) number = number << 8 | static_cast<std::uint64_t>(each);
  return number;
}

microseconds since(Clock::time_point began) {
  return std::chrono::duration_cast<microseconds>(Clock::now() - began);
}

// The receiver's report arrives while the sender may be waiting for room.
class Answer {
 public:
  void set(std::optional<Received> received) {
    const std::lock_guard lock{mutex_};
    received_ = received;
    is_there_ = true;
    changed_.notify_all();
  }
  bool is_there() {
    const std::lock_guard lock{mutex_};
    return is_there_;
  }
  // False when it did not come in time.
  bool wait_until(Clock::time_point deadline) {
    std::unique_lock lock{mutex_};
    return changed_.wait_until(lock, deadline, [this] { return is_there_; });
  }
  std::optional<Received> get() {
    const std::lock_guard lock{mutex_};
    return received_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_there_ = false;
  std::optional<Received> received_;
};

std::optional<Received> read_report(Association& association) {
  std::array<std::byte, 256> room;
  while (const auto message = association.receive(room)) {
    if (message->kind != Kind::control || message->bytes != sizeof(Report)) continue;
    const std::span<const std::byte, 256> all{room};
    return Received{.bytes = get(all.subspan<0, 8>()),
                    .elapsed = microseconds(get(all.subspan<8, 8>())),
                    .cpu = microseconds(get(all.subspan<16, 8>()))};
  }
  return std::nullopt;
}

}  // namespace

Sent send_stream(Association& association, std::chrono::milliseconds length, std::size_t message_bytes) {
  Sent sent;
  sent.message_bytes = message_bytes != 0 ? message_bytes : association.largest_unfragmented();
  std::vector<std::byte> message(sent.message_bytes);
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(i * 131 >> 3);

  Start start;
  put(start, static_cast<std::uint64_t>(length.count()));
  if (!association.send(Kind::control, start))
    throw std::runtime_error("the other side closed the association before the start");
  const auto began = Clock::now();
  const auto cpu_before = cpu_of_process();

  Answer answer;
  std::thread reader{[&] { answer.set(read_report(association)); }};
  // A sender that waits for room cannot check the time.
  std::thread guard{[&] {
    if (!answer.wait_until(began + length + kPatience)) association.abort();
  }};
  // It goes on until the receiver has its seconds full: both begin at the same word, half a round trip apart.
  bool over = false;
  while (!answer.is_there() && association.send(Kind::data, message)) {
    if (over) continue;
    sent.bytes += message.size();
    if (since(began) < length) continue;
    over = true;
    sent.elapsed = since(began);
    sent.cpu = cpu_of_process() - cpu_before;
  }
  guard.join();
  association.abort();
  reader.join();

  const auto received = answer.get();
  if (!received) throw std::runtime_error("the receiver did not report");
  sent.received = *received;
  if (!over) {
    sent.elapsed = since(began);
    sent.cpu = cpu_of_process() - cpu_before;
  }
  return sent;
}

Received receive_stream(Association& association) {
  std::vector<std::byte> room(kReadBytes);
  auto message = association.receive(room);
  if (!message || message->kind != Kind::control || message->bytes != sizeof(Start))
    throw std::runtime_error("the connected host is not a sender of this program");
  const auto length = std::chrono::milliseconds(get(std::span{room}.first<8>()));
  const auto began = Clock::now();
  const auto cpu_before = cpu_of_process();

  Received received;
  bool over = false;
  while (!over && (message = association.receive(room))) {
    received.elapsed = since(began);
    over = received.elapsed >= length;
    if (!over) received.bytes += message->bytes;
  }
  if (!over) throw std::runtime_error("the sender ended early");
  received.elapsed = length;  // what arrived after it was not counted
  received.cpu = cpu_of_process() - cpu_before;

  Report report;
  const std::span<std::byte, 24> all{report};
  put(all.subspan<0, 8>(), received.bytes);
  put(all.subspan<8, 8>(), static_cast<std::uint64_t>(received.elapsed.count()));
  put(all.subspan<16, 8>(), static_cast<std::uint64_t>(received.cpu.count()));
  association.send(Kind::control, report);
  while (association.receive(room)) {
  }
  return received;
}

}  // namespace longhaul::sctp
