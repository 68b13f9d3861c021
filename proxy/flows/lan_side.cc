// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/lan_side.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>

#include "proxy/flows/arrivals.h"
#include "proxy/flows/reset_on_close.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
namespace {

constexpr std::size_t kPieces = 64;  // slices in one write

bool lan_would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

LanSide::LanSide(tcp::socket socket, FlowBytes& bytes, User& user)
    : socket_(std::move(socket)), bytes_(bytes), user_(user), self_(std::make_shared<LanSide*>(this)) {}

LanSide::~LanSide() {
  *self_ = nullptr;
  close();
}

void LanSide::prepare() {
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(tcp::no_delay(true), ignored);
  reset_on_close(socket_.native_handle(), true);
}

ReadSpace& LanSide::read_space() {
  thread_local ReadSpace space;
  if (!space.memory)
    space.slice = Slice::unfilled(link::StreamWriter::kRecordRoom + kReadBytes, space.memory);
  return space;
}

LanSide::Received LanSide::receive(std::size_t room) {
  std::byte* bytes = read_space().memory + link::StreamWriter::kRecordRoom;
  ssize_t size = 0;
  do {
    size = ::recv(socket_.native_handle(), bytes, room, 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && lan_would_block(errno)) return {Got::nothing};
  if (trial_) {
    const bool passed = size > 0 && trial_->is_passed_by({bytes, static_cast<std::size_t>(size)});
    if (!passed && make_stale()) return {Got::nothing};
    trial_.reset();
  }
  if (size <= 0) return {size < 0 ? Got::failure : Got::end};
  bytes_.lan_in += static_cast<std::uint64_t>(size);
  return {Got::bytes, static_cast<std::size_t>(size)};
}

void LanSide::wait_to_read() {
  if (is_stale()) return;
  up = Pump::waiting;
  socket_.async_wait(tcp::socket::wait_read, [self = self_](boost::system::error_code error) {
    if (!*self || error || (*self)->up != Pump::waiting) return;
    (*self)->up = Pump::running;
    (*self)->user_.on_lan_readable();
  });
}

void LanSide::watch_for_failure() {
  if (is_stale() || std::exchange(watching_, true)) return;
  socket_.async_wait(tcp::socket::wait_error, [self = self_](boost::system::error_code error) {
    if (!*self) return;
    LanSide& lan = **self;
    lan.watching_ = false;
    // A pump that is `running` between two events is held back. In any other state the next read reports the
    // error, and querying it here would clear it.
    if (error || lan.up != Pump::running) return;
    int failure = 0;
    socklen_t size = sizeof failure;
    getsockopt(lan.socket_.native_handle(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) lan.user_.on_lan_failed();
  });
}

bool LanSide::send_preface() {
  const std::string bytes = std::exchange(preface_, {});
  return ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool LanSide::make_stale() {
  if (!trial_ || !trial_->fail()) return false;
  up = down = Pump::held;
  return true;
}

// Nothing reads a further response of the server.
void LanSide::drop_stale() { trial_->all_said().empty() ? close_gently() : reset(); }

bool LanSide::replace(tcp::socket socket) {
  const std::unique_ptr<Trial> trial = std::move(trial_);
  use(std::move(socket));
  prepare();
  const Bytes said = trial->all_said();
  set_preface({reinterpret_cast<const char*>(said.data()), said.size()});
  if (!send_preface()) return false;
  up = down = Pump::running;
  if (!trial->has_ended()) return true;
  end_output();
  down = Pump::done;
  return true;
}

LanSide::Written LanSide::send(const SliceQueue& queue) {
  if (trial_ && !trial_->may_say(queue) && make_stale()) return {Sent::waits};
  std::array<iovec, kPieces> pieces;
  std::size_t count = 0;
  queue.visit({queue.begin_offset(), queue.end_offset()}, [&](Bytes piece) {
    pieces[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
    return count < kPieces;
  });
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  ssize_t size = 0;
  do {
    size = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  if (size >= 0) {
    if (trial_) trial_->said(queue, static_cast<std::size_t>(size));
    bytes_.lan_out += static_cast<std::uint64_t>(size);
    return {Sent::some, static_cast<std::size_t>(size)};
  }
  if (!lan_would_block(errno)) return {make_stale() ? Sent::waits : Sent::failure};
  wait_to_write();
  return {Sent::waits};
}

void LanSide::wait_to_write() {
  down = Pump::waiting;
  socket_.async_wait(tcp::socket::wait_write, [self = self_](boost::system::error_code error) {
    if (!*self || error || (*self)->down != Pump::waiting) return;
    (*self)->down = Pump::running;
    (*self)->user_.on_lan_writable();
  });
}

void LanSide::end_output() {
  if (trial_) trial_->ended();
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

bool LanSide::has_delivered() const {
  const int fd = const_cast<tcp::socket&>(socket_).native_handle();
  // After a reset by the client nothing more is delivered, but the kernel still counts the undelivered bytes.
  tcp_info state{};
  socklen_t size = sizeof state;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &state, &size) == 0 && state.tcpi_state == TCP_CLOSE)
    return true;
  int undelivered = 0;
  ioctl(fd, SIOCOUTQ, &undelivered);
  // An unacknowledged FIN counts as one byte.
  return undelivered <= 1;
}

std::size_t LanSide::unacknowledged() { return unacknowledged_bytes(socket_.native_handle()); }

void LanSide::reset() {
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

void LanSide::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void LanSide::close_gently() {
  reset_on_close(socket_.native_handle(), false);
  close();
}

tcp::socket LanSide::take_socket() {
  up = down = Pump::done;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
  return std::move(socket_);
}

}  // namespace longhaul::flows
