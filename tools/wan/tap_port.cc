// SPDX-License-Identifier: Apache-2.0
// A port on a TAP device, for users with the right to open one but without packet sockets. The kernel does
// not stamp its frames, so a frame arrives when it is read: late wake-ups show here, unlike on a packet port.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "tools/wan/clock.h"
#include "tools/wan/descriptor.h"
#include "tools/wan/frame.h"
#include "tools/wan/port.h"

namespace longhaul::wan {
namespace {

constexpr std::size_t kLargestRead = 64 * 1024 + kEthernetHeader + kVlanTag;

class TapPort final : public Port {
 public:
  explicit TapPort(const std::string& device);
  int descriptor() const override { return device_.get(); }
  std::optional<Arrival> receive() override;
  void send(std::span<const std::span<const std::byte>> frames) override;
  bool still_there() override { return ::if_nametoindex(name_.c_str()) != 0; }
  PortCounters counters() override { return counters_; }
  void reset_counters() override { counters_ = {}; }
  const std::string& name() const override { return name_; }

 private:
  std::string name_;
  Descriptor device_;
  std::size_t largest_frame_ = 0;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kLargestRead);
  PortCounters counters_;
};

TapPort::TapPort(const std::string& device) : name_(device) {
  if (device.empty() || device.size() >= IFNAMSIZ)
    throw std::runtime_error("\"" + device + "\" is not a valid device name");
  device_ = Descriptor{must(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "open /dev/net/tun")};
  ifreq request{};
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  must(::ioctl(device_.get(), TUNSETIFF, &request), "attach to TAP device " + device);

  const Descriptor any{must(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket")};
  must(::ioctl(any.get(), SIOCGIFMTU, &request), "MTU of " + device);
  largest_frame_ = static_cast<std::size_t>(request.ifr_mtu) + kEthernetHeader + kVlanTag;
  // A device made just now is down. An ordinary user may not bring it up; the device's owner has done so
  // then.
  if (::ioctl(any.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) == 0) {
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    must(::ioctl(any.get(), SIOCSIFFLAGS, &request), "bring up " + device);
  }
}

std::optional<Arrival> TapPort::receive() {
  const ssize_t size = ::read(device_.get(), buffer_.data(), buffer_.size());
  if (size <= 0)
    return std::nullopt;  // nothing there, or the device is down: the descriptor tells when that ends
  const auto length = static_cast<std::size_t>(size);
  if (length > largest_frame_) {
    ++counters_.oversized;
    return Arrival{clock_now(), {}};
  }
  return Arrival{clock_now(), std::span(buffer_).first(length)};
}

void TapPort::send(std::span<const std::span<const std::byte>> frames) {
  for (const auto frame : frames)
    if (::write(device_.get(), frame.data(), frame.size()) < 0) ++counters_.send_failed;
}

}  // namespace

std::unique_ptr<Port> open_tap_port(const std::string& device) { return std::make_unique<TapPort>(device); }

}  // namespace longhaul::wan
