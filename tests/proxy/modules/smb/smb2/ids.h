// SPDX-License-Identifier: Apache-2.0
// MessageIds by their numbers, as tests name them: 7_message, or a plain number where a test's own builder
// takes an AnyId.
#pragma once
#include <concepts>

#include "proxy/modules/smb/smb2/types.h"
#include "tests/proxy/link/numbers.h"

namespace longhaul::smb::smb2 {

constexpr MessageId operator""_message(unsigned long long number) { return MessageId(number); }

namespace test {

struct AnyId {
  template <std::integral Number>
  constexpr AnyId(Number number) : id(static_cast<std::uint64_t>(number)) {}
  constexpr AnyId(MessageId known) : id(known) {}
  constexpr operator MessageId() const { return id; }
  MessageId id;
};

// As `next++` is for a plain number.
constexpr MessageId take_next(MessageId& next) {
  const MessageId taken = next;
  ++next;
  return taken;
}

}  // namespace test
}  // namespace longhaul::smb::smb2
