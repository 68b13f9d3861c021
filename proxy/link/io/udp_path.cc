// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_path.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "proxy/link/stall.h"

namespace longhaul::link::udp {
namespace asio = boost::asio;
namespace {

// Limit of one turn before other flows have theirs: half a millisecond of encryption.
constexpr std::size_t kSendTurnBytes = 512 * 1024;

}  // namespace

UdpPath::UdpPath(asio::io_context& io, UdpEndpoint& endpoint, UdpCarrierConfig config, Session& session,
                 UdpPathOwner& owner)
    : endpoint_(endpoint),
      session_(session),
      owner_(owner),
      carrier_(std::move(config), session, Clock::now()),
      timer_(io),
      self_(std::make_shared<UdpPath*>(this)) {
  endpoint_.add(carrier_.own_id().bytes, *this);
  kick();
}

UdpPath::~UdpPath() {
  *self_ = nullptr;
  endpoint_.remove(carrier_.own_id().bytes, *this);
}

void UdpPath::fail(std::string why) {
  if (std::exchange(failed_, true)) return;
  // Posted, because the owner destroys this object.
  asio::post(timer_.get_executor(), [self = self_, why = std::move(why)] {
    if (*self) (*self)->owner_.on_path_breach(**self, why);
  });
}

void UdpPath::on_datagram(std::span<std::byte> datagram, const UdpEndpoint::Arrival& arrival) {
  if (failed_) return;
  if (auto taken = carrier_.receive(datagram, arrival.from, arrival.now, arrival.at); !taken)
    return fail(taken.error().message());
  // The carrier follows a peer that moved only after it has proved its address. So does our source address.
  if (arrival.to != source_ && arrival.from == carrier_.peer()) source_ = arrival.to;
}

void UdpPath::on_turn_end() {
  // Flows first: their reads create credit, and their writes share packets with the acknowledgements.
  auto self = self_;
  owner_.after_path_activity();
  if (!*self) return;
  session_.work().begin_turn();
  turn();
}

void UdpPath::on_writable() {
  busy_ = false;
  session_.work().begin_turn();
  turn();
}

void UdpPath::kick() {
  if (busy_ || std::exchange(kicked_, true)) return;
  asio::post(timer_.get_executor(), [self = self_] {
    if (!*self) return;
    (*self)->kicked_ = false;
    (*self)->session_.work().begin_turn();
    (*self)->turn();
  });
}

void UdpPath::turn() {
  // Streams that were held back because the queue here was full may continue.
  if (transmit()) {
    auto self = self_;
    owner_.after_path_activity();
    if (!*self) return;
  }
  arm_timer();
}

// Returns true if something was sent.
bool UdpPath::transmit() {
  std::size_t sent = 0;
  while (!busy_ && !failed_) {
    if (sent >= kSendTurnBytes || session_.work().used_up()) {
      kick();
      break;
    }
    if (batch_.bytes.empty() && !carrier_.transmit(batch_, Clock::now())) break;
    const std::size_t size = batch_.bytes.size(), datagram = batch_.segment_bytes;
    sent += size;
    switch (endpoint_.send(batch_, source_, *this)) {
      case UdpEndpoint::Sent::yes:
        break;
      case UdpEndpoint::Sent::busy:
        busy_ = true;
        break;
      case UdpEndpoint::Sent::too_large:
        carrier_.on_too_large(std::min(datagram, size), Clock::now());
        break;
      case UdpEndpoint::Sent::refused:
        // The address that the peer used may no longer exist on this host.
        source_ = asio::ip::address();
        break;
    }
  }
  return sent > 0;
}

void UdpPath::arm_timer() {
  if (failed_) return;
  const auto next = carrier_.next_timeout();
  // A timer that fires too early is set again, which is cheaper than moving it for every packet.
  if (!next || (timer_at_ && *timer_at_ <= *next)) return;
  timer_at_ = next;
  timer_.expires_at(*next);
  timer_.async_wait([self = self_, due = *next, number = ++timer_number_](boost::system::error_code error) {
    if (error || !*self || (*self)->timer_number_ != number) return;
    (*self)->on_timer(due);
  });
}

void UdpPath::on_timer(TimePoint due) {
  const TimePoint now = Clock::now();
  timer_at_.reset();
  lateness_ += {1, now - due, now - due};
  if (failed_) return;
  if (now - due > kStall && !std::exchange(reads_first_, true)) {
    carrier_.on_stall(now - due, now);
    return arm_timer();  // due at once, but the loop reads sockets before it serves timers
  }
  reads_first_ = false;
  session_.work().begin_turn();
  carrier_.on_timeout(now);
  auto self = self_;
  owner_.after_path_activity();
  if (*self) turn();
}

}  // namespace longhaul::link::udp
