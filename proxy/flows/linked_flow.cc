// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/linked_flow.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/post.hpp>

#include "proxy/flows/linked_flow_parts.h"
#include "proxy/flows/reset_on_close.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
using link::EventKind;
using link::ReadState;
using namespace std::chrono_literals;
namespace {

constexpr std::size_t kPieces = 64;  // slices in one write

}  // namespace

LinkedFlow::LinkedFlow(tcp::socket socket, link::PeerLink& link, link::Stream& stream, FlowRecord& record,
                       OnEnd on_end)
    : socket_(std::move(socket)),
      link_(link),
      stream_(&stream),
      record_(record),
      on_end_(std::make_unique<OnEnd>(std::move(on_end))),
      self_(std::make_shared<LinkedFlow*>(this)) {
  link_.give_user(stream.id(), *this);
}

LinkedFlow::~LinkedFlow() {
  *self_ = nullptr;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void LinkedFlow::prepare_socket() {
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(tcp::no_delay(true), ignored);
  reset_on_close(socket_.native_handle(), true);
}

void LinkedFlow::start_near(Begin begin, std::function<std::string(ConnectOutcome)> reply,
                            OnAnswer on_answer) {
  prepare_socket();
  opening_ = std::make_unique<Opening>(Opening{std::move(reply), std::move(on_answer)});
  down_ = Pump::running;
  if (begin == Begin::at_once) {
    up_ = Pump::running;
    pump_up();
  }
  link_.kick();
}

void LinkedFlow::start_far(tcp::socket server, const link::OpenAnswer& answer) {
  socket_ = std::move(server);
  prepare_socket();
  stream_->give_answer(answer);
  up_ = down_ = Pump::running;
  pump_down();
  if (!finished_) pump_up();
  link_.kick();
}

void LinkedFlow::refuse_far(ConnectOutcome outcome) {
  link::OpenAnswer answer{.outcome = outcome};
  stream_->give_answer(answer);
  // The answer and then the abort, in this order: the near side resets its client.
  stream_->abort();
  finish(End::reset);
}

void LinkedFlow::cut() {
  if (finished_) return;
  if (stream_) stream_->reset(link::ResetCode::aborted);
  reset_socket();
  finish(End::reset);
}

void LinkedFlow::suspect_peer() {
  if (!finished_ && module_) module_->host.twin_lost();
}

std::optional<LinkedFlow::Client> LinkedFlow::take_back() {
  // What a module was given it may have made something else of; an end that the server may know of would be
  // said twice.
  if (!unanswered() || !stream_ || up_ == Pump::done || (module_ && record_.bytes.lan_in > 0))
    return std::nullopt;
  auto bytes = stream_->take_back();
  if (!bytes) return std::nullopt;
  finished_ = true;
  up_ = down_ = Pump::done;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
  link_.release(std::exchange(stream_, nullptr)->id());
  return Client{std::move(socket_), std::move(std::exchange(opening_, nullptr)->reply), std::move(*bytes)};
}

void LinkedFlow::on_stream_event(EventKind kind) {
  if (finished_) return;
  switch (kind) {
    case EventKind::answered:
      return on_answer();
    case EventKind::readable:
      // The other end's connection was reset. If ours does not take what came before, it is told all the
      // same.
      if (down_ == Pump::waiting && stream_->read_state() == ReadState::aborted && !timer_ &&
          !module_has(modules::Way::to_lan))
        return reset_in_the_end();
      return pump_down();
    case EventKind::writable:
      return pump_up();
    case EventKind::features:
      record_.features = stream_->request().features;
      return features_changed();
    case EventKind::stopped:
      // The other end's connection is closed for good. What it sent before still comes; then ours is reset.
      peer_stopped_ = true;
      if (module_has(modules::Way::to_lan)) return stop_for_module();
      up_ = Pump::done;
      if (down_ == Pump::done) reset_after_delivery();
      return;
    case EventKind::reset:
      if (module_) module_->host.twin_lost();  // a reset overtakes what was sent before it
      count();
      reset_socket();
      return finish(End::reset);
    case EventKind::opened:
      return;
  }
}

void LinkedFlow::on_answer() {
  auto opening = std::move(opening_);
  const link::OpenAnswer answer = *stream_->answer();
  if (opening) {
    if (opening->reply) preface_ = opening->reply(answer.outcome);
    if (opening->on_answer) opening->on_answer(*this, answer);
  }
  if (answer.outcome != ConnectOutcome::connected) {
    // The client hears what it would have heard: SOCKS a sentence, everybody else a reset.
    bool told = !preface_.empty() && write_preface();
    stream_->abort();
    boost::system::error_code ignored;
    if (told) {
      reset_on_close(socket_.native_handle(), false);
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
    } else {
      reset_socket();
    }
    return finish(End::reset);
  }
  // It has one of this name and version, or the flow would not have been opened with it: what was sent may
  // mean nothing to it.
  if (!stream_->request().module.empty() && !answer.module_accepted) return cut();
  if (up_ == Pump::held) {
    up_ = Pump::running;
    pump_up();
  }
  if (!finished_) pump_down();
}

// ------------------------------------------------------------------------------------------- socket to
// stream

void LinkedFlow::pump_up() {
  if (module_has(modules::Way::to_stream)) return run_module();
  if (up_ != Pump::running || finished_) return;
  bool wrote = false;
  for (int i = 0; i < kReadsPerTurn; ++i) {
    std::size_t room = std::min(stream_->may_write(), kReadBytes);
    // The session says `writable` when there is room again.
    if (room == 0) {
      if (wrote) link_.kick();
      watch_for_failure();
      return count();
    }
    ReadSpace& space = read_space();
    std::byte* bytes = space.memory + link::Stream::kRecordRoom;
    ssize_t size = ::recv(socket_.native_handle(), bytes, room, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && would_block(errno)) break;
    if (size < 0) return socket_failed();
    if (size == 0) {
      stream_->end();
      up_ = Pump::done;
      link_.kick();
      count();
      return finish_if_done();
    }
    record_.bytes.lan_in += static_cast<std::uint64_t>(size);
    if (static_cast<std::size_t>(size) < kCopyBelow) {
      stream_->write({bytes, static_cast<std::size_t>(size)});
    } else {
      std::byte* memory = std::exchange(space.memory, nullptr);
      stream_->write_in_place(std::move(space.slice), memory, static_cast<std::size_t>(size));
    }
    wrote = true;
    if (static_cast<std::size_t>(size) < room) break;
  }
  if (wrote) link_.kick();
  count();
  wait_to_read();
}

void LinkedFlow::wait_to_read() {
  up_ = Pump::waiting;
  socket_.async_wait(tcp::socket::wait_read, [self = self_](boost::system::error_code error) {
    if (!*self || error || (*self)->up_ != Pump::waiting) return;
    (*self)->up_ = Pump::running;
    (*self)->pump_up();
  });
}

// A connection that nobody reads for now may be reset meanwhile.
void LinkedFlow::watch_for_failure() {
  if (std::exchange(watching_, true)) return;
  socket_.async_wait(tcp::socket::wait_error, [self = self_](boost::system::error_code error) {
    if (!*self) return;
    LinkedFlow& flow = **self;
    flow.watching_ = false;
    // `running` between two events: held back. Otherwise whoever reads next is told, and asking would take
    // the error away from it.
    if (error || flow.finished_ || flow.up_ != Pump::running) return;
    int failure = 0;
    socklen_t size = sizeof failure;
    getsockopt(flow.socket_.native_handle(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) flow.socket_failed();
  });
}

// ------------------------------------------------------------------------------------------- stream to
// socket

bool LinkedFlow::write_preface() {
  // A few bytes on a fresh connection: the kernel has room for them.
  std::string bytes = std::exchange(preface_, {});
  return ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

void LinkedFlow::pump_down() {
  if (module_has(modules::Way::to_lan)) return run_module();
  if (down_ != Pump::running || finished_) return;
  if (!preface_.empty() && !write_preface()) return socket_failed();
  count();  // also where the client reads more slowly than the line brings
  bool delivered = false;
  while (!stream_->readable().empty()) {
    if (!deliver()) return;
    delivered = true;
  }
  if (had_module_) take_messages();
  if (finished_) return;
  // Credit may have to be told.
  if (delivered) link_.kick();
  count();
  switch (stream_->read_state()) {
    case ReadState::open:
      return;
    case ReadState::ended: {
      boost::system::error_code ignored;
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
      down_ = Pump::done;
      if (peer_stopped_) return reset_after_delivery();
      return finish_if_done();
    }
    case ReadState::aborted:
    case ReadState::reset:
      down_ = Pump::done;
      return reset_after_delivery();
  }
}

// One write of what the queue begins with; negative: errno says why not.
ssize_t LinkedFlow::send_pieces(const SliceQueue& queue) {
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
    record_.bytes.lan_out += static_cast<std::uint64_t>(size);
  } else if (would_block(errno)) {
    down_ = Pump::waiting;
    socket_.async_wait(tcp::socket::wait_write, [self = self_](boost::system::error_code error) {
      if (!*self || error || (*self)->down_ != Pump::waiting) return;
      (*self)->down_ = Pump::running;
      (*self)->pump_down();
    });
  }
  return size;
}

// False: the flow waits for the socket, or is over.
bool LinkedFlow::deliver() {
  const ssize_t size = send_pieces(stream_->readable());
  if (size >= 0) {
    stream_->consume(static_cast<std::size_t>(size), link::Clock::now(), link_.session().liveness().smoothed_rtt());
    return true;
  }
  if (down_ == Pump::waiting) {
    link_.kick();
  } else {
    socket_failed();
  }
  return false;
}

// ----------------------------------------------------------------------------------------------------- the
// end

// This side's connection was reset: behind what it sent, so is the other's.
void LinkedFlow::socket_failed() {
  if (module_has(modules::Way::to_stream)) {
    lose_lan();
    return run_module();
  }
  stream_->abort();
  count();
  finish(End::reset);
}

void LinkedFlow::reset_socket() {
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

// A reset takes away what the kernel has not delivered yet, so it waits for that, within reason.
void LinkedFlow::reset_after_delivery(int tries) {
  int undelivered = 0;
  ioctl(socket_.native_handle(), SIOCOUTQ, &undelivered);
  // A FIN that waits for its acknowledgement counts as one byte there.
  if (undelivered <= 1 || tries == 0) {
    if (stream_ && !stream_->may_finish()) stream_->abort();
    reset_socket();
    return finish(End::reset);
  }
  if (!timer_) timer_ = std::make_unique<asio::steady_timer>(socket_.get_executor());
  timer_->expires_after(10ms);
  timer_->async_wait([self = self_, tries](boost::system::error_code error) {
    if (*self && !error) (*self)->reset_after_delivery(tries - 1);
  });
}

void LinkedFlow::reset_in_the_end() {
  timer_ = std::make_unique<asio::steady_timer>(socket_.get_executor());
  timer_->expires_after(kDeliveryTries * 10ms);
  timer_->async_wait([self = self_](boost::system::error_code error) {
    // Set anew where all was delivered before.
    if (*self && !error && !(*self)->finished_) (*self)->reset_after_delivery(0);
  });
}

void LinkedFlow::finish_if_done() {
  if (up_ == Pump::done && down_ == Pump::done && module_is_done()) finish(End::closed);
}

void LinkedFlow::count() {
  if (!stream_) return;
  record_.bytes.wan_out = stream_->wire_sent();
  record_.bytes.wan_in = stream_->wire_received();
  record_.blocks = stream_->blocks();
}

void LinkedFlow::finish(End end) {
  if (std::exchange(finished_, true)) return;
  // What is still to be sent is counted, too: nobody looks at it later.
  if (stream_ && end == End::closed) stream_->encode_all();
  count();
  up_ = down_ = Pump::done;
  boost::system::error_code ignored;
  auto executor = socket_.get_executor();
  if (end == End::closed) reset_on_close(socket_.native_handle(), false);
  socket_.close(ignored);
  if (stream_) link_.release(std::exchange(stream_, nullptr)->id());
  // Callers up the stack are still inside this object.
  asio::post(executor, [self = self_, end] {
    if (!*self) return;
    OnEnd on_end = std::move(*(*self)->on_end_);
    on_end(**self, end);
  });
}

}  // namespace longhaul::flows
