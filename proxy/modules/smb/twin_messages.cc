// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/twin_messages.h"

#include <vector>

#include "crypto/secret_slice.h"

namespace longhaul::smb {
namespace {

// As twin::encode(), whose buffer is not wiped: the keys are written directly to their final memory.
Slice encode_keys(std::size_t type, const SealKeys& keys) {
  std::vector<Slice> plain;  // numbers and lengths
  std::vector<Bytes> parts;
  const auto number = [&](std::uint64_t value) {
    twin::FieldWriter out;
    out.write(value);
    plain.push_back(out.take());
    parts.push_back(plain.back().bytes());
  };
  const auto field = [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, Slice>) {
      number(value.size());
      parts.push_back(value.bytes());
    } else {
      number(value);
    }
  };
  number(type);
  std::apply([&](auto... each) { (field(keys.*each), ...); }, SealKeys::kFields);
  return secret_slice(parts);
}

}  // namespace

Slice encode(const TwinMessage& message) {
  if (const auto* const keys = std::get_if<SealKeys>(&message))
    return encode_keys(message.index() + 1, *keys);
  return twin::encode(message);
}

Result<TwinMessage> decode(Bytes message) { return twin::decode<TwinMessage>(message); }

}  // namespace longhaul::smb
