// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the messages between two halves. A message is a plain struct that lists its fields once
// (kFields). A module's messages form a variant of such structs, and their indexes in it are their types on
// the wire, so new ones are appended. The halves implement the effects of messages.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "codecs/byte_reader.h"
#include "codecs/byte_writer.h"
#include "codecs/result.h"
#include "codecs/slice.h"
#include "proxy/modules/twin/open_key.h"

namespace longhaul::twin {

enum class MessageError { unknown_message = 1, malformed_message };
const boost::system::error_category& message_error_category();
inline boost::system::error_code make_error_code(MessageError error) {
  return {static_cast<int>(error), message_error_category()};
}

// The largest number of raw bytes that may follow a message.
inline constexpr std::uint32_t kMaxAttachedBytes = 1 << 20;

// Numbers take seven bits a byte, lowest first, because the client and the server choose ids and session
// numbers, which may have up to 64 bits.
class FieldWriter {
 public:
  void write(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(std::byte((value & 0x7f) | 0x80));
    out_.push_back(std::byte(value));
  }
  void write(const Slice& value) { write(value.bytes()); }
  void write(Bytes bytes) {
    write(std::uint64_t{bytes.size()});
    append(out_, bytes);
  }
  void write(const Stamp& stamp) {
    write(std::uint64_t{stamp.near});
    write(std::uint64_t{stamp.far});
  }
  void write(const OpenKey& key) {
    write(key.session);
    write(std::uint64_t{key.tree});
    std::size_t size = key.id.size();
    while (size > 0 && key.id[size - 1] == std::byte{0}) --size;
    write(Bytes(key.id).first(size));
  }
  void write(MessageNumber value) { write(value.number()); }
  void write(const std::optional<std::uint64_t>& value) {
    write(std::uint64_t{value.has_value()});
    if (value) write(*value);
  }
  Slice take() { return Slice::copy_of(out_); }

 private:
  Buffer out_;
};

// A field that does not fit makes the whole message an error, which at_end() reports.
class FieldReader {
 public:
  explicit FieldReader(Bytes in) : in_(in) {}
  bool at_end() const { return ok_ && in_.remaining() == 0; }

  void read(std::uint64_t& value) { value = number(~0ull); }
  void read(std::uint32_t& value) { value = static_cast<std::uint32_t>(number(0xFFFFFFFF)); }
  void read(std::uint16_t& value) { value = static_cast<std::uint16_t>(number(0xFFFF)); }
  void read(std::uint8_t& value) { value = static_cast<std::uint8_t>(number(0xFF)); }
  void read(bool& value) { value = number(1) != 0; }
  void read(Slice& value) { value = Slice::copy_of(bytes()); }
  void read(Stamp& stamp) {
    read(stamp.near);
    read(stamp.far);
  }
  void read(OpenKey& key) {
    read(key.session);
    read(key.tree);
    const Bytes id = bytes();
    if (id.size() > key.id.size()) return fail();
    std::ranges::copy(id, key.id.begin());
  }
  void read(MessageNumber& value) { value = MessageNumber{number(~0ull)}; }
  void read(std::optional<std::uint64_t>& value) {
    if (number(1) == 0) return;
    read(value.emplace());
  }

 private:
  std::uint64_t number(std::uint64_t most);
  Bytes bytes();
  void fail() {
    ok_ = false;
    in_ = ByteReader({});
  }

  ByteReader in_;
  bool ok_ = true;
};

// The number of raw bytes that follow the message: the value of its member `attached_bytes`.
template <class... Messages>
std::uint32_t attached_bytes(const std::variant<Messages...>& message) {
  return std::visit(
      [](const auto& m) -> std::uint32_t {
        if constexpr (requires { m.attached_bytes(); }) return m.attached_bytes();
        return 0;
      },
      message);
}

template <class... Messages>
Slice encode(const std::variant<Messages...>& message) {
  FieldWriter out;
  out.write(std::uint64_t{message.index() + 1});
  std::visit(
      [&]<class M>(const M& m) {
        std::apply([&](auto... field) { (out.write(m.*field), ...); }, M::kFields);
      },
      message);
  return out.take();
}

namespace detail {
template <class Variant, std::size_t I = 0>
Result<Variant> decode_as(std::size_t type, Bytes body) {
  if constexpr (I < std::variant_size_v<Variant>) {
    if (type != I) return decode_as<Variant, I + 1>(type, body);
    using Message = std::variant_alternative_t<I, Variant>;
    Message message;
    FieldReader in(body);
    std::apply([&](auto... field) { (in.read(message.*field), ...); }, Message::kFields);
    if (!in.at_end()) return make_error_code(MessageError::malformed_message);
    Variant result(std::in_place_index<I>, std::move(message));
    if (attached_bytes(result) > kMaxAttachedBytes) return make_error_code(MessageError::malformed_message);
    return result;
  } else {
    return make_error_code(MessageError::unknown_message);
  }
}
}  // namespace detail

// Copies the bytes that it needs. An error means that the twin is another program: reset the flow.
template <class Variant>
Result<Variant> decode(Bytes message) {
  static_assert(std::variant_size_v<Variant> < 0x80, "one byte of type");
  if (message.empty()) return make_error_code(MessageError::malformed_message);
  const auto type = std::to_integer<std::size_t>(message[0]);
  if (type == 0 || type > std::variant_size_v<Variant>) return make_error_code(MessageError::unknown_message);
  return detail::decode_as<Variant>(type - 1, message.subspan(1));
}

}  // namespace longhaul::twin

template <>
struct boost::system::is_error_code_enum<longhaul::twin::MessageError> : std::true_type {};
