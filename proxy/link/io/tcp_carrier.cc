// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tcp_carrier.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>

namespace longhaul::link {
namespace asio = boost::asio;
namespace {

using namespace std::chrono_literals;

// Unsent bytes in the kernel form a queue that no other data can overtake. Its size is a few milliseconds of
// the line, at least two packets, and enough to keep a fast line busy until the loop returns.
constexpr Duration kKernelQueue = 6ms;
constexpr std::uint32_t kLowWaterMin = 4 * 1024, kLowWaterStart = 16 * 1024, kLowWaterMax = 1 << 20;
// The size of a STREAM frame limits how much one stream sends before another has its turn.
constexpr Duration kTurn = 5ms;
constexpr std::size_t kChunkMin = 2800;
// Frames are made, encrypted and sent in pieces that stay in the processor's cache.
constexpr std::size_t kBatchMax = 192 * 1024;
// Reads in pieces of this size, a few per turn, and no more than a turn's work, so that no connection blocks
// the loop.
constexpr std::size_t kReadBytes = 256 * 1024;
constexpr int kReadsPerTurn = 4;
constexpr Duration kMeasureInterval = 50ms;

std::size_t bytes_in(Duration time, std::uint64_t bytes_per_second) {
  return static_cast<std::size_t>(std::chrono::duration<double>(time).count() *
                                  static_cast<double>(bytes_per_second));
}

std::byte* read_scratch() {
  // One buffer per thread: it never holds bytes across a wait.
  thread_local auto scratch = std::make_unique_for_overwrite<std::byte[]>(kReadBytes);
  return scratch.get();
}

}  // namespace

TcpCarrier::TcpCarrier(CarrierId id, TlsConnection connection, Session& session, CarrierOwner& owner,
                       std::uint64_t rate_bits, TotalRate& total)
    : id_(id),
      connection_(std::move(connection)),
      session_(session),
      owner_(owner),
      rate_bits_(rate_bits),
      total_(total),
      self_(std::make_shared<TcpCarrier*>(this)) {
  boost::system::error_code ignored;
  connection_.socket().non_blocking(true, ignored);
  low_water_ = kLowWaterStart;
  set_unsent_low_water(connection_.socket().native_handle(), low_water_);
  bound_rate();
}

TcpCarrier::~TcpCarrier() {
  *self_ = nullptr;
  boost::system::error_code ignored;
  connection_.socket().close(ignored);
}

const std::string& TcpCarrier::remote() const { return connection_.remote(); }

void TcpCarrier::start() {
  // Frames may have arrived together with the HELLO.
  asio::post(connection_.socket().get_executor(), [self = self_] {
    if (!*self) return;
    TcpCarrier& carrier = **self;
    carrier.session_.work().begin_turn();
    Buffer early = std::exchange(carrier.connection_.plain(), {});
    if (auto taken = carrier.session_.receive(carrier.id_, early, Clock::now()); !taken)
      return carrier.fail(taken.error().message());
    carrier.wait_readable();
    carrier.owner_.after_activity();
    if (*self) (*self)->flush();
  });
}

void TcpCarrier::fail(int error) {
  fail(boost::system::error_code(error, boost::system::system_category()).message(),
       error == ECONNRESET || error == EPIPE ? EndedBy::peer : EndedBy::other);
}

void TcpCarrier::fail(std::string why, EndedBy by) {
  if (std::exchange(failed_, true)) return;
  // Posted, because the owner destroys this object.
  asio::post(connection_.socket().get_executor(), [self = self_, why = std::move(why), by] {
    if (*self) (*self)->owner_.on_carrier_closed((*self)->id_, why, by);
  });
}

void TcpCarrier::close(CloseCode code, std::string text) {
  failed_ = true;
  // Only after a complete record; otherwise only the end of the connection notifies the peer.
  if (sent_of_pending_ == connection_.tls().outgoing().size()) {
    connection_.tls().outgoing().clear();
    connection_.refuse(code, std::move(text));
  }
}

// --------------------------------------------------------------------------------------------- reading

void TcpCarrier::wait_readable() {
  connection_.socket().async_wait(asio::ip::tcp::socket::wait_read,
                                  [self = self_](boost::system::error_code error) {
                                    if (!*self || error) return;
                                    (*self)->on_readable();
                                  });
}

void TcpCarrier::on_readable() {
  if (failed_) return;
  session_.work().begin_turn();
  std::byte* scratch = read_scratch();
  thread_local Buffer plain;
  // While work is deferred to another turn, reading pauses, too, and the peer's window limits it.
  const int reads = session_.state().has_work_left ? 0 : kReadsPerTurn;
  for (int i = 0; i < reads && !session_.work().used_up(); ++i) {
    ssize_t size = ::recv(connection_.socket().native_handle(), scratch, kReadBytes, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (size < 0) return fail(errno);
    if (size == 0) return fail("the peer closed the connection", EndedBy::peer);
    bytes_received_ += static_cast<std::uint64_t>(size);
    plain.clear();
    auto decrypted = connection_.tls().receive({scratch, static_cast<std::size_t>(size)}, plain);
    // Data before an error is valid.
    if (auto taken = session_.receive(id_, plain, Clock::now()); !taken) return fail(taken.error().message());
    if (!decrypted) return fail("TLS: " + connection_.tls().error_text());
    if (connection_.tls().closed_by_peer()) {
      // fail() acts later: data before the end is processed first.
      fail("the peer closed the connection", EndedBy::peer);
      return owner_.after_activity();
    }
    if (static_cast<std::size_t>(size) < kReadBytes) break;
  }
  wait_readable();
  // The owner may destroy this carrier.
  auto self = self_;
  owner_.after_activity();
  if (*self) flush();
}

// --------------------------------------------------------------------------------------------- writing

void TcpCarrier::kick() {
  if (waiting_writable_ || std::exchange(kicked_, true)) return;
  asio::post(connection_.socket().get_executor(), [self = self_] {
    if (!*self) return;
    (*self)->kicked_ = false;
    (*self)->session_.work().begin_turn();
    (*self)->flush();
  });
}

void TcpCarrier::send(Bytes frames) {
  if (failed_) return;
  if (auto sealed = connection_.tls().send(frames); !sealed)
    return fail("TLS: " + connection_.tls().error_text());
  if (!waiting_writable_) send_pending();
}

void TcpCarrier::flush() {
  // Streams that were held back because the queue here was full may continue.
  if (write_frames()) owner_.after_activity();
}

// Returns true if something was sent.
bool TcpCarrier::write_frames() {
  if (failed_ || waiting_writable_) return false;
  TimePoint now = Clock::now();
  measure(now);
  int socket = connection_.socket().native_handle();
  std::size_t chunk =
      rate_ ? std::clamp(bytes_in(kTurn, rate_), kChunkMin, kMaxStreamPayload) : kLowWaterStart;
  bool sent = false;
  while (send_pending() && session_.outgoing().wants_to_transmit(id_, now)) {
    if (session_.work().used_up()) {
      kick();
      break;
    }
    // The kernel would accept more than it can send soon; it reports when it has room.
    std::size_t unsent = unsent_bytes(socket);
    if (unsent >= low_water_) {
      wait_writable();
      break;
    }
    frames_.clear();
    session_.outgoing().transmit(id_, std::clamp(2 * low_water_ - unsent, kChunkMin, kBatchMax), chunk,
                                 frames_, now);
    if (frames_.empty()) break;
    sent = true;
    if (auto sealed = connection_.tls().send_pieces(frames_.bytes()); !sealed) {
      fail("TLS: " + connection_.tls().error_text());
      break;
    }
  }
  return sent;
}

// Returns false while ciphertext waits for the socket.
bool TcpCarrier::send_pending() {
  Buffer& out = connection_.tls().outgoing();
  while (sent_of_pending_ < out.size()) {
    ssize_t size = ::send(connection_.socket().native_handle(), out.data() + sent_of_pending_,
                          out.size() - sent_of_pending_, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) {
      wait_writable();
      return false;
    }
    if (size < 0) {
      fail(errno);
      return false;
    }
    sent_of_pending_ += static_cast<std::size_t>(size);
    bytes_sent_ += static_cast<std::uint64_t>(size);
  }
  out.clear();
  sent_of_pending_ = 0;
  return true;
}

void TcpCarrier::wait_writable() {
  if (std::exchange(waiting_writable_, true)) return;
  connection_.socket().async_wait(asio::ip::tcp::socket::wait_write,
                                  [self = self_](boost::system::error_code error) {
                                    if (!*self || error) return;
                                    (*self)->waiting_writable_ = false;
                                    (*self)->session_.work().begin_turn();
                                    (*self)->flush();
                                  });
}

void TcpCarrier::bound_rate() {
  std::uint64_t share = total_.share();
  std::uint64_t bound = rate_bits_ && share ? std::min(rate_bits_, share) : std::max(rate_bits_, share);
  if (bound == bound_bits_) return;
  bound_bits_ = bound;
  set_rate_limit(connection_.socket().native_handle(), bound);
}

// Reports the measured rate, within the limits, to the session.
void TcpCarrier::tell_line_rate() {
  if (session_.preferred() != id_) return;
  const std::uint64_t bound = bound_bits_ / 8;
  session_.outgoing().set_line_rate(rate_ && bound ? std::min(rate_, bound) : std::max(rate_, bound));
}

void TcpCarrier::measure(TimePoint now) {
  if (now - measured_at_ < kMeasureInterval) return;
  measured_at_ = now;
  bound_rate();
  int socket = connection_.socket().native_handle();
  LineMeasure line = measure_line(socket);
  // A rate measured with little data says nothing about the line; a real decrease is measured soon.
  if (line.application_limited && line.delivery_rate < rate_) return;
  rate_ = line.delivery_rate >= rate_ ? line.delivery_rate : (7 * rate_ + line.delivery_rate) / 8;
  tell_line_rate();
  if (rate_ == 0) return;
  auto wanted = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(bytes_in(kKernelQueue, rate_), kLowWaterMin, kLowWaterMax));
  if (wanted > low_water_ * 5 / 4 || wanted < low_water_ * 3 / 4) {
    low_water_ = wanted;
    set_unsent_low_water(socket, low_water_);
    session_.outgoing().set_unsent_limit(std::clamp<std::size_t>(bytes_in(20ms, rate_), 64 * 1024, 4 << 20));
  }
}

}  // namespace longhaul::link
