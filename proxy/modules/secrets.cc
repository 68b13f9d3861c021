// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/secrets.h"

namespace longhaul::modules {

bool AddressRange::contains(const Address& other) const {
  for (unsigned bit = 0; bit < prefix_length; bit += 8) {
    const unsigned bits = prefix_length - bit;
    const std::byte mask = bits >= 8 ? std::byte{0xff} : std::byte(0xff00 >> bits & 0xff);
    if (((address[bit / 8] ^ other[bit / 8]) & mask) != std::byte{0}) return false;
  }
  return true;
}

}  // namespace longhaul::modules
