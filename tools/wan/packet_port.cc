// SPDX-License-Identifier: Apache-2.0
// A port on an existing interface: a packet socket whose receive ring is shared with the kernel (TPACKET_V2:
// version 3 delivers whole blocks, up to a timer tick late). Frames are sent by copy: a transmit ring's slots
// would be reused while a veth peer still reads them.
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tools/wan/clock.h"
#include "tools/wan/descriptor.h"
#include "tools/wan/frame.h"
#include "tools/wan/port.h"

namespace longhaul::wan {
namespace {

constexpr std::size_t kRingBytes = 16 * 1024 * 1024;  // 8192 packets: 98 ms at 1 Gbit/s
constexpr std::size_t kBlockBytes = 128 * 1024;
constexpr std::size_t kSlotOverhead = 128;  // the kernel's header before each frame
constexpr std::size_t kMaxBatch = 64;

template <class T>
void set_option(int socket, int level, int option, const T& value, const std::string& what) {
  must(::setsockopt(socket, level, option, &value, sizeof value), what);
}

class PacketPort final : public Port {
 public:
  explicit PacketPort(const std::string& interface);
  ~PacketPort() override { ::munmap(ring_, kRingBytes); }

  int descriptor() const override { return socket_.get(); }
  std::optional<Arrival> receive() override;
  void send(std::span<const std::span<const std::byte>> frames) override;
  bool still_there() override;
  PortCounters counters() override;
  void reset_counters() override { counters_ = {}; }
  const std::string& name() const override { return name_; }

 private:
  std::byte* slot() const { return ring_ + next_slot_ * slot_bytes_; }
  static std::atomic_ref<std::uint32_t> status_of(std::byte* slot) {
    return std::atomic_ref<std::uint32_t>(reinterpret_cast<tpacket2_hdr*>(slot)->tp_status);
  }
  std::span<const std::byte> frame_in(std::byte* slot, std::uint32_t status);

  std::string name_;
  Descriptor socket_;
  unsigned index_ = 0;
  std::size_t largest_frame_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t slots_ = 0;
  std::byte* ring_ = nullptr;
  std::size_t next_slot_ = 0;
  bool slot_lent_ = false;           // the last frame returned still lies in it
  bool in_batch_ = false;            // frames have been read since the ring was last empty
  std::vector<std::byte> with_tag_;  // a frame whose VLAN tag the kernel had taken out
  WallClock clock_;
  PortCounters counters_;
};

PacketPort::PacketPort(const std::string& interface) : name_(interface) {
  index_ = ::if_nametoindex(interface.c_str());
  if (index_ == 0) throw std::runtime_error("no interface \"" + interface + "\" in this namespace");
  // Protocol 0: nothing is received until everything is set up and bound.
  const int socket = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0 && errno == EPERM)
    throw std::runtime_error(
        "packet sockets need root or CAP_NET_RAW; other users can use TAP devices (tap:NAME)");
  socket_ = Descriptor{must(socket, "packet socket")};

  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  must(::ioctl(socket_.get(), SIOCGIFMTU, &request), "MTU of " + interface);
  const auto mtu = static_cast<std::size_t>(request.ifr_mtu);
  // The loopback device has no Ethernet header to speak of, and its MTU would need slots as large as a block.
  if (mtu > 16 * 1024)
    throw std::runtime_error(interface + " has an MTU above 16384, which cannot be emulated");
  largest_frame_ = mtu + kEthernetHeader + kVlanTag;
  slot_bytes_ = std::bit_ceil(std::max<std::size_t>(2048, largest_frame_ + kSlotOverhead));
  slots_ = kRingBytes / slot_bytes_;

  set_option(socket_.get(), SOL_PACKET, PACKET_VERSION, int{TPACKET_V2}, "TPACKET_V2");
  set_option(socket_.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  set_option(socket_.get(), SOL_PACKET, PACKET_QDISC_BYPASS, 1, "PACKET_QDISC_BYPASS");
  tpacket_req ring{};
  ring.tp_block_size = kBlockBytes;
  ring.tp_block_nr = kRingBytes / kBlockBytes;
  ring.tp_frame_size = static_cast<unsigned>(slot_bytes_);
  ring.tp_frame_nr = static_cast<unsigned>(slots_);
  set_option(socket_.get(), SOL_PACKET, PACKET_RX_RING, ring, "receive ring");
  void* memory = ::mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket_.get(), 0);
  if (memory == MAP_FAILED) must(-1, "map the receive ring");
  ring_ = static_cast<std::byte*>(memory);

  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = __builtin_bswap16(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(index_);
  must(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
       "bind to " + interface);
  packet_mreq
      everything{};  // frames for the hosts behind the line, not only for this interface's own address
  everything.mr_ifindex = static_cast<int>(index_);
  everything.mr_type = PACKET_MR_PROMISC;
  set_option(socket_.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, everything,
             "promiscuous mode on " + interface);
}

std::optional<Arrival> PacketPort::receive() {
  if (slot_lent_) {
    status_of(slot()).store(TP_STATUS_KERNEL, std::memory_order_release);
    next_slot_ = (next_slot_ + 1) % slots_;
    slot_lent_ = false;
  }
  const std::uint32_t status = status_of(slot()).load(std::memory_order_acquire);
  if ((status & TP_STATUS_USER) == 0) {
    in_batch_ = false;
    return std::nullopt;
  }
  if (!in_batch_) clock_.refresh();  // once per batch, so that its stamps keep their distances
  in_batch_ = true;
  slot_lent_ = true;
  const auto* header = reinterpret_cast<const tpacket2_hdr*>(slot());
  return Arrival{clock_.to_steady(header->tp_sec, header->tp_nsec), frame_in(slot(), status)};
}

std::span<const std::byte> PacketPort::frame_in(std::byte* slot, std::uint32_t status) {
  const auto* header = reinterpret_cast<const tpacket2_hdr*>(slot);
  if (header->tp_len > largest_frame_ || header->tp_len > header->tp_snaplen) {
    ++counters_.oversized;
    return {};
  }
  std::span<std::byte> frame{slot + header->tp_mac, header->tp_len};
  if ((status & TP_STATUS_CSUMNOTREADY) != 0 && finish_checksum(frame)) ++counters_.checksums_finished;
  if ((status & TP_STATUS_VLAN_VALID) == 0 || frame.size() < kEthernetHeader) return frame;

  constexpr std::size_t kAddresses = 12;
  const unsigned type = (status & TP_STATUS_VLAN_TPID_VALID) != 0 ? header->tp_vlan_tpid : 0x8100u;
  const std::array tag{static_cast<std::byte>(type >> 8), static_cast<std::byte>(type & 0xff),
                       static_cast<std::byte>(header->tp_vlan_tci >> 8),
                       static_cast<std::byte>(header->tp_vlan_tci & 0xff)};
  with_tag_.assign(frame.begin(), frame.begin() + kAddresses);
  with_tag_.insert(with_tag_.end(), tag.begin(), tag.end());
  with_tag_.insert(with_tag_.end(), frame.begin() + kAddresses, frame.end());
  return with_tag_;
}

void PacketPort::send(std::span<const std::span<const std::byte>> frames) {
  std::array<iovec, kMaxBatch> parts;
  std::array<mmsghdr, kMaxBatch> messages;
  while (!frames.empty()) {
    const std::size_t batch = std::min(frames.size(), kMaxBatch);
    for (std::size_t i = 0; i < batch; ++i) {
      parts[i] = {const_cast<std::byte*>(frames[i].data()), frames[i].size()};
      messages[i] = {};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int sent = ::sendmmsg(socket_.get(), messages.data(), static_cast<unsigned>(batch), MSG_DONTWAIT);
    // The call stops at the first frame the kernel refuses; that one is gone, as on a wire, and the rest go
    // on.
    if (sent <= 0) ++counters_.send_failed;
    frames = frames.subspan(static_cast<std::size_t>(std::max(sent, 1)));
  }
}

bool PacketPort::still_there() {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  std::array<char, IF_NAMESIZE> current;
  return ::if_indextoname(index_, current.data()) != nullptr;
}

PortCounters PacketPort::counters() {
  tpacket_stats fresh{};  // since the last call
  socklen_t size = sizeof fresh;
  if (::getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &fresh, &size) == 0)
    counters_.ring_dropped += fresh.tp_drops;
  return counters_;
}

}  // namespace

std::unique_ptr<Port> open_packet_port(const std::string& interface) {
  return std::make_unique<PacketPort>(interface);
}

std::unique_ptr<Port> open_port(const std::string& name) {
  constexpr std::string_view kTap = "tap:";
  return name.starts_with(kTap) ? open_tap_port(name.substr(kTap.size())) : open_packet_port(name);
}

}  // namespace longhaul::wan
