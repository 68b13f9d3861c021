// SPDX-License-Identifier: Apache-2.0
// Which cipher wins depends on the machine; that the answer stays the same does not.
#include "proxy/link/io/cipher_choice.h"

#include <catch2/catch.hpp>

using longhaul::link::udp::choose_cipher;

TEST_CASE("the cipher is chosen once") { CHECK(choose_cipher() == choose_cipher()); }
