// SPDX-License-Identifier: Apache-2.0
// See receive.h.
#include "tools/ttcp/receive.h"

#include <array>

#include "tools/measuring/door.h"
#include "tools/ttcp/fragments.h"
#include "tools/ttcp/tally.h"

namespace longhaul::ttcp {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kPatience =
    150s;  // for a sign of life from the sender: a lost packet's last repairs are that far apart

// Datagrams in batches, so that at small sizes the receiver keeps up with a sender of single ones.
class Batch {
 public:
  explicit Batch(std::size_t payload_bytes) : slot_(payload_bytes + 1), memory_(kSlots * slot_) {
    for (std::size_t i = 0; i < kSlots; ++i) {
      parts_[i] = {memory_.data() + i * slot_, slot_};
      messages_[i].msg_hdr.msg_iov = &parts_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }

  // False: there are no more now.
  template <class Handler>
  bool receive(int socket, const Handler& handler) {
    const int got = ::recvmmsg(socket, messages_.data(), kSlots, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < got; ++i) handler(Bytes{memory_.data() + i * slot_, messages_[i].msg_len});
    return got > 0;
  }

 private:
  static constexpr std::size_t kSlots = 32;
  std::size_t slot_;  // one byte more, so that a longer datagram is not taken for one of ours
  std::vector<std::byte> memory_;
  std::array<iovec, kSlots> parts_{};
  std::array<mmsghdr, kSlots> messages_{};
};

// The sender says how much it has sent, once, and then waits for the receipt: whatever else comes, its end
// too, is why there will be none. So this is called whenever the connection has something, before and after.
void read_sent(Channel& control, std::optional<std::uint64_t>& sent) {
  const auto message = control.poll();
  if (!message) return;
  if (sent || say_of(*message) != "sent") throw PeerGone("unexpected message from the other side");
  sent = static_cast<std::uint64_t>(measuring::number(*message, "packets", 0, kMostPackets));
}

[[noreturn]] void gave_no_sign() { throw PeerGone("nothing received from the sender for 150 s"); }

}  // namespace

Receipt receive_udp(int socket, const Announcement& announcement, Channel& control, const Stop& stop) {
  const Fragments before = read_fragments();
  Tally tally{
      {announcement.test, announcement.payload_bytes, std::chrono::milliseconds{announcement.silence_ms}}};
  Batch batch{announcement.payload_bytes};
  const auto on_datagram = [&](Bytes datagram) { tally.on_datagram(datagram, Clock::now()); };
  std::optional<std::uint64_t> sent;
  TimePoint last_sign = Clock::now();
  for (;;) {
    pollfd sources[] = {{socket, POLLIN, 0}, {control.descriptor(), POLLIN, 0}};
    const TimePoint deadline = tally.deadline().value_or(last_sign + kPatience);
    if (wait(sources, deadline, stop))
      last_sign = Clock::now();
    else if (!sent)
      gave_no_sign();
    // What waits in the socket came before any decision that it is over.
    bool is_drained = false;
    for (int rounds = 0; rounds < 64 && !is_drained; ++rounds)
      is_drained = !batch.receive(socket, on_datagram);
    if (sources[1].revents != 0) {
      const bool was_sent = sent.has_value();
      read_sent(control, sent);
      if (sent && !was_sent) tally.on_sent(*sent, Clock::now());
    }
    const Ending ending = tally.ending(Clock::now());
    if (ending == Ending::none || !is_drained) continue;
    Receipt receipt;
    receipt.packets = tally.received();
    receipt.payload_bytes = tally.received() * announcement.payload_bytes;
    receipt.seconds = std::chrono::duration<double>(tally.elapsed()).count();
    receipt.duplicates = tally.duplicates();
    receipt.out_of_order = tally.out_of_order();
    receipt.socket_drops = drops_of(socket);
    receipt.fragments = read_fragments() - before;
    receipt.ended_by = name_of(ending);
    return receipt;
  }
}

Receipt receive_tcp(int listener, const Announcement& announcement, Channel& control, const Stop& stop) {
  const Fragments before = read_fragments();
  std::optional<std::uint64_t> sent;
  const TimePoint patience = Clock::now() + kPatience;
  // Anybody may try the port; a stranger's bytes would be counted.
  measuring::Door door{listener, announcement.pass};
  auto admitted = door.look(Clock::now());
  for (std::vector<pollfd> sources; !admitted; admitted = door.look(Clock::now())) {
    sources.assign({{control.descriptor(), POLLIN, 0}});
    door.watch(sources);
    if (!wait(sources, patience, stop)) gave_no_sign();
    if (sources[0].revents != 0) read_sent(control, sent);  // so little that it is all on its way
  }
  const wan::Descriptor data = std::move(admitted->socket);
  const TimePoint began = admitted->accepted;
  std::vector<std::byte> buffer(std::max<std::size_t>(announcement.payload_bytes, 64 * 1024));
  Receipt receipt;
  bool closed = false;
  while (!closed || !sent) {
    pollfd sources[] = {{closed ? -1 : data.get(), POLLIN, 0}, {control.descriptor(), POLLIN, 0}};
    if (!wait(sources, Clock::now() + kPatience, stop)) gave_no_sign();
    if (sources[1].revents != 0) read_sent(control, sent);
    if (sources[0].revents == 0) continue;
    const auto got = ::recv(data.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      receipt.payload_bytes += static_cast<std::uint64_t>(got);
    } else if (got == 0) {
      closed = true;
      receipt.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    } else if (errno != EAGAIN && errno != EINTR) {
      throw PeerGone("the data connection failed: " + std::generic_category().message(errno));
    }
  }
  receipt.packets = receipt.payload_bytes / announcement.payload_bytes;
  receipt.fragments = read_fragments() - before;
  receipt.ended_by = "close";
  return receipt;
}

}  // namespace longhaul::ttcp
