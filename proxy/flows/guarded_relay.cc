// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/guarded_relay.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <vector>

#include "codecs/slice_queue.h"
#include "proxy/flows/arrivals.h"
#include "proxy/flows/reset_on_close.h"

namespace longhaul::flows {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kGuardedRead = 64 << 10;
// A side is read while less than this is queued for the other.
constexpr std::size_t kGuardedWaiting = 256 << 10;
// How much is moved before the loop serves other flows.
constexpr std::size_t kGuardedTurn = 4 << 20;

struct GuardedSide {
  tcp::socket& socket;
  std::uint64_t& bytes_in;
  std::uint64_t& bytes_out;
  SliceQueue out{};
  bool ended = false;  // it will send nothing more
  bool told = false;   // the end of the other side
};

bool would_block(const error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again ||
         error == asio::error::interrupted;
}

class GuardedRelay {
 public:
  GuardedRelay(tcp::socket& client, tcp::socket& server, FlowBytes& bytes, modules::Guard& guard,
               modules::Memory& memory)
      : client_{client, bytes.lan_in, bytes.lan_out},
        server_{server, bytes.wan_in, bytes.wan_out},
        guard_(guard),
        memory_(memory) {}
  ~GuardedRelay() { memory_.remove(counted_); }
  GuardedRelay(const GuardedRelay&) = delete;
  GuardedRelay& operator=(const GuardedRelay&) = delete;

  asio::awaitable<std::optional<RelayEnd>> run(Bytes first);

 private:
  bool moves() {
    return write(client_) + write(server_) + read(client_, server_) + read(server_, client_) > 0;
  }
  bool read(GuardedSide& from, const GuardedSide& to);
  bool write(GuardedSide& to);
  void say(const GuardedSide& from, Slice bytes);
  void pass_end(const GuardedSide& from, GuardedSide& to);
  void count_memory();
  asio::awaitable<void> wait();
  asio::awaitable<void> close();

  bool may_read(const GuardedSide& from, const GuardedSide& to) const {
    return !from.ended && !guard_.is_done() && to.out.size() < kGuardedWaiting;
  }
  bool has_stepped_aside() const { return guard_.is_done() && client_.out.empty() && server_.out.empty(); }
  void fail(const GuardedSide& side) {
    if (!end_) end_ = &side == &client_ ? RelayEnd::client_reset : RelayEnd::server_reset;
  }

  GuardedSide client_, server_;
  modules::Guard& guard_;
  modules::Memory& memory_;
  std::size_t counted_ = 0;  // in memory_
  std::size_t turn_ = 0;
  Arrivals arrivals_;  // of the guard's output to the client
  std::optional<RelayEnd> end_;
};

// Passes the side's bytes to the guard, or its end if they are empty.
void GuardedRelay::say(const GuardedSide& from, Slice bytes) {
  modules::Guard::Out out;
  const bool is_client = &from == &client_;
  if (is_client && arrivals_.any()) {
    const std::uint64_t written = client_.out.begin_offset();
    const std::uint64_t on_its_way = unacknowledged_bytes(client_.socket.native_handle());
    if (const auto arrived = arrivals_.poll(written - std::min(written, on_its_way))) guard_.arrived(*arrived);
  }
  if (from.ended)
    is_client ? guard_.client_ended(out) : guard_.server_ended(out);
  else
    is_client ? guard_.from_client(std::move(bytes), out) : guard_.from_server(std::move(bytes), out);
  // Without memory for large frames the guard cannot read the flow, and an unread flow's client could miss a
  // report.
  if (memory_.is_short() && guard_.held_bytes() > kGuardedRead && !guard_.give_up(out)) out.reset = true;
  if (out.reset) end_ = RelayEnd::cancelled;
  for (Slice& slice : out.to_client) client_.out.push(std::move(slice));
  for (Slice& slice : out.to_server) server_.out.push(std::move(slice));
  arrivals_.sent(guard_.awaited(), client_.out.end_offset());
}

// Returns true if bytes or the end were passed to the guard.
bool GuardedRelay::read(GuardedSide& from, const GuardedSide& to) {
  if (end_ || !may_read(from, to)) return false;
  std::byte buffer[kGuardedRead];
  error_code error;
  const std::size_t size = from.socket.read_some(asio::buffer(buffer), error);
  if (would_block(error)) return false;
  if (error == asio::error::eof) {
    from.ended = true;
  } else if (error) {
    fail(from);
    return false;
  }
  from.bytes_in += size;
  turn_ += size;
  say(from, Slice::copy_of(Bytes(buffer).first(size)));
  return true;
}

bool GuardedRelay::write(GuardedSide& to) {
  std::size_t written = 0;
  while (!to.out.empty()) {
    const Slice front = to.out.front();
    error_code error;
    const std::size_t size = to.socket.write_some(asio::buffer(front.bytes().data(), front.size()), error);
    if (error && !would_block(error)) fail(to);
    if (error) break;
    written += size;
    to.out.drop_until(to.out.begin_offset() + size);
  }
  to.bytes_out += written;
  turn_ += written;
  return written > 0;
}

void GuardedRelay::pass_end(const GuardedSide& from, GuardedSide& to) {
  if (!from.ended || to.told || !to.out.empty()) return;
  error_code gone;  // reading reports the error, too
  to.socket.shutdown(tcp::socket::shutdown_send, gone);
  to.told = true;
}

void GuardedRelay::count_memory() {
  const std::size_t held = guard_.held_bytes() + client_.out.size() + server_.out.size();
  if (held > counted_) memory_.add(held - counted_);
  if (held < counted_) memory_.remove(counted_ - held);
  counted_ = held;
}

asio::awaitable<void> GuardedRelay::wait() {
  using Wait = decltype(client_.socket.async_wait(tcp::socket::wait_read, asio::deferred));
  std::vector<Wait> waits;
  const auto add = [&](GuardedSide& side, const GuardedSide& other) {
    if (may_read(side, other))
      waits.push_back(side.socket.async_wait(tcp::socket::wait_read, asio::deferred));
    if (!side.out.empty()) waits.push_back(side.socket.async_wait(tcp::socket::wait_write, asio::deferred));
  };
  add(client_, server_);
  add(server_, client_);
  co_await asio::experimental::make_parallel_group(std::move(waits))
      .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
}

asio::awaitable<void> GuardedRelay::close() {
  // Data that the failed side had sent before is still delivered as far as there is room.
  if (end_ == RelayEnd::client_reset) {
    write(server_);
    co_await close_with_reset(server_.socket);
  }
  if (end_ == RelayEnd::server_reset) {
    write(client_);
    co_await close_with_reset(client_.socket);
  }
  for (GuardedSide* side : {&client_, &server_}) {
    if (end_ == RelayEnd::finished) reset_on_close(side->socket.native_handle(), false);
    error_code ignored;
    side->socket.close(ignored);
  }
}

asio::awaitable<std::optional<RelayEnd>> GuardedRelay::run(Bytes first) {
  co_await asio::this_coro::throw_if_cancelled(false);
  for (GuardedSide* side : {&client_, &server_}) {
    error_code error;
    side->socket.non_blocking(true, error);
    if (error) end_ = RelayEnd::cancelled;
    reset_on_close(side->socket.native_handle(), true);
  }
  if (!first.empty()) say(client_, Slice::copy_of(first));
  while (!end_ && !has_stepped_aside()) {
    const bool moved = moves();
    pass_end(client_, server_);
    pass_end(server_, client_);
    count_memory();
    if (client_.told && server_.told && !end_) end_ = RelayEnd::finished;
    if (end_ || has_stepped_aside()) break;
    if (!moved) {
      turn_ = 0;
      co_await wait();
    } else if (turn_ >= kGuardedTurn) {
      turn_ = 0;
      co_await asio::post(asio::use_awaitable);
    }
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
      end_ = RelayEnd::cancelled;
  }
  if (end_) co_await close();
  co_return end_;
}

}  // namespace

asio::awaitable<std::optional<RelayEnd>> relay_guarded(tcp::socket& client, tcp::socket& server,
                                                       FlowBytes& bytes, Bytes first, modules::Guard& guard,
                                                       modules::Memory& memory) {
  GuardedRelay relay(client, server, bytes, guard, memory);
  co_return co_await relay.run(first);
}

}  // namespace longhaul::flows
