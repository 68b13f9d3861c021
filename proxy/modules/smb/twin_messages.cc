// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/twin_messages.h"

#include "codecs/byte_reader.h"
#include "codecs/keyed_hash.h"

namespace longhaul::smb {
namespace {

// One byte of type, then the fields in order; numbers seven bits at a time, lowest first, because ids and
// session numbers are the client's and the server's and may be as large as 64 bits allow.
class Writer {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(std::byte((value & 0x7f) | 0x80));
    out_.push_back(std::byte(value));
  }
  void bytes(Bytes bytes) {
    number(bytes.size());
    append(out_, bytes);
  }
  void key(const OpenKey& key) {
    number(key.session);
    number(key.tree);
    std::size_t size = key.id.size();
    while (size > 0 && key.id[size - 1] == std::byte{0}) --size;
    bytes(Bytes(key.id).first(size));
  }
  void stamp(const Stamp& stamp) {
    number(stamp.near);
    number(stamp.far);
  }
  Slice take() { return Slice::copy_of(out_); }

  void body(const Ahead& m) {
    key(m.open);
    stamp(m.stamp);
    number(m.offset);
    number(m.length);
    number(m.end_of_file.has_value());
    if (m.end_of_file) number(*m.end_of_file);
  }
  void body(const Used& m) {
    key(m.open);
    number(m.offset);
    number(m.length);
    number(m.message);
    number(m.charge);
    number(m.seen);
  }
  void body(const Asked& m) {
    key(m.open);
    stamp(m.stamp);
    number(m.message);
    number(m.missing_from);
    number(m.missing_to);
    number(m.seen);
  }
  void body(const Forwarded& m) { number(m.message); }
  void body(const Drop& m) {
    key(m.open);
    number(m.epoch);
  }
  void body(const Promised& m) {
    key(m.open);
    number(m.message);
  }
  void body(const Kept& m) {
    number(m.message);
    number(m.status);
    number(m.written);
    number(m.credits);
  }
  void body(const Room& m) {
    number(m.session);
    number(m.tree);
    number(m.available_bytes);
    number(m.counted_bytes);
  }
  void body(const Held& m) {
    key(m.open);
    number(m.level);
  }
  void body(const Break& m) {
    key(m.open);
    number(m.level);
  }
  void body(const Broken& m) { key(m.open); }
  void body(const Answer& m) {
    key(m.open);
    number(m.command);
    number(m.status);
    bytes(m.request.bytes());
    number(m.response_bytes);
  }
  void body(const Expect& m) {
    number(m.message);
    number(m.command);
    bytes(m.request.bytes());
  }
  void body(const Enumerate& m) {
    key(m.open);
    number(m.message);
    number(m.all);
    number(m.served);
    number(m.info_class);
    bytes(m.pattern.bytes());
  }
  void body(const More& m) {
    key(m.open);
    number(m.bytes);
  }
  void body(const Local& m) {
    number(m.message);
    number(m.charge);
  }
  void body(const Offer& m) {
    number(m.number);
    key(m.open);
    bytes(m.request.bytes());
    bytes(m.questions.bytes());
    number(m.response_bytes);
  }
  void body(const Revoke& m) { number(m.number); }
  void body(const Took& m) { number(m.number); }
  void body(const GaveUp& m) { number(m.number); }
  void body(const MakeReal& m) {
    key(m.open);
    bytes(m.request.bytes());
  }
  void body(const Allowance& m) { number(m.bytes); }
  void body(const Remembers& m) { number(m.near); }
  void body(const Settled& m) { key(m.open); }
  void body(const Watched& m) {
    key(m.open);
    number(m.watched);
  }
  void body(const Paths& m) {
    number(m.session);
    number(m.others);
  }

 private:
  Buffer out_;
};

// A field that does not fit makes the whole message an error; ok() tells at the end.
class Reader {
 public:
  explicit Reader(Bytes in) : in_(in) {}
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
    Bytes id = bytes();
    if (id.size() > key.id.size()) return fail();
    std::copy(id.begin(), id.end(), key.id.begin());
  }
  void read(std::optional<std::uint64_t>& value) {
    if (number(1) == 0) return;
    read(value.emplace());
  }
  template <class First, class... Rest>
  void fields(First& first, Rest&... rest) {
    read(first);
    (read(rest), ...);
  }

 private:
  std::uint64_t number(std::uint64_t most) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      auto byte = in_.u8();
      if (!byte) return fail(), 0;
      std::uint64_t bits = *byte & 0x7fu;
      if (shift == 63 && bits > 1) return fail(), 0;
      value |= bits << shift;
      if (!(*byte & 0x80u)) return value <= most ? value : (fail(), 0);
    }
    return fail(), 0;
  }
  Bytes bytes() {
    std::uint64_t size = number(~0ull);
    auto taken = in_.bytes(size);
    if (!taken) return fail(), Bytes{};
    return *taken;
  }
  void fail() {
    ok_ = false;
    in_ = ByteReader({});
  }

  ByteReader in_;
  bool ok_ = true;
};

void fields(Reader& in, Ahead& m) { in.fields(m.open, m.stamp, m.offset, m.length, m.end_of_file); }
void fields(Reader& in, Used& m) { in.fields(m.open, m.offset, m.length, m.message, m.charge, m.seen); }
void fields(Reader& in, Asked& m) {
  in.fields(m.open, m.stamp, m.message, m.missing_from, m.missing_to, m.seen);
}
void fields(Reader& in, Forwarded& m) { in.fields(m.message); }
void fields(Reader& in, Drop& m) { in.fields(m.open, m.epoch); }
void fields(Reader& in, Promised& m) { in.fields(m.open, m.message); }
void fields(Reader& in, Kept& m) { in.fields(m.message, m.status, m.written, m.credits); }
void fields(Reader& in, Room& m) { in.fields(m.session, m.tree, m.available_bytes, m.counted_bytes); }
void fields(Reader& in, Held& m) { in.fields(m.open, m.level); }
void fields(Reader& in, Break& m) { in.fields(m.open, m.level); }
void fields(Reader& in, Broken& m) { in.fields(m.open); }
void fields(Reader& in, Answer& m) { in.fields(m.open, m.command, m.status, m.request, m.response_bytes); }
void fields(Reader& in, Expect& m) { in.fields(m.message, m.command, m.request); }
void fields(Reader& in, Enumerate& m) {
  in.fields(m.open, m.message, m.all, m.served, m.info_class, m.pattern);
}
void fields(Reader& in, More& m) { in.fields(m.open, m.bytes); }
void fields(Reader& in, Local& m) { in.fields(m.message, m.charge); }
void fields(Reader& in, Offer& m) { in.fields(m.number, m.open, m.request, m.questions, m.response_bytes); }
void fields(Reader& in, Revoke& m) { in.fields(m.number); }
void fields(Reader& in, Took& m) { in.fields(m.number); }
void fields(Reader& in, GaveUp& m) { in.fields(m.number); }
void fields(Reader& in, MakeReal& m) { in.fields(m.open, m.request); }
void fields(Reader& in, Allowance& m) { in.fields(m.bytes); }
void fields(Reader& in, Remembers& m) { in.fields(m.near); }
void fields(Reader& in, Settled& m) { in.fields(m.open); }
void fields(Reader& in, Watched& m) { in.fields(m.open, m.watched); }
void fields(Reader& in, Paths& m) { in.fields(m.session, m.others); }

// The type byte is the message's place in TwinMessage, from one on.
template <std::size_t I = 0>
Result<TwinMessage> decode_as(std::size_t type, Bytes body) {
  if constexpr (I < std::variant_size_v<TwinMessage>) {
    if (type != I) return decode_as<I + 1>(type, body);
    std::variant_alternative_t<I, TwinMessage> message;
    Reader in(body);
    fields(in, message);
    if (!in.at_end()) return make_error_code(TwinError::malformed_message);
    TwinMessage result(std::in_place_index<I>, std::move(message));
    if (attached_bytes(result) > kMaxAttachedBytes) return make_error_code(TwinError::malformed_message);
    return result;
  } else {
    return make_error_code(TwinError::unknown_message);
  }
}

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "longhaul.smb.twin"; }
  std::string message(int value) const override {
    return static_cast<TwinError>(value) == TwinError::unknown_message ? "unknown twin message"
                                                                       : "malformed twin message";
  }
};

}  // namespace

std::size_t OpenKeyHash::operator()(const OpenKey& key) const {
  std::uint64_t halves[2];
  std::memcpy(halves, key.id.data(), sizeof(halves));
  const KeyedHash hash;
  return hash(hash(halves[0], halves[1]), hash(key.session, key.tree));
}

const boost::system::error_category& twin_error_category() {
  static const Category category;
  return category;
}

Slice encode(const TwinMessage& message) {
  Writer out;
  out.number(message.index() + 1);
  std::visit([&](const auto& m) { out.body(m); }, message);
  return out.take();
}

Result<TwinMessage> decode(Bytes message) {
  if (message.empty()) return make_error_code(TwinError::malformed_message);
  auto type = std::to_integer<std::size_t>(message[0]);
  if (type == 0 || type > std::variant_size_v<TwinMessage>)
    return make_error_code(TwinError::unknown_message);
  return decode_as(type - 1, message.subspan(1));
}

std::uint32_t attached_bytes(const TwinMessage& message) {
  if (auto* ahead = std::get_if<Ahead>(&message)) return ahead->length;
  if (auto* answer = std::get_if<Answer>(&message)) return answer->response_bytes;
  if (auto* offer = std::get_if<Offer>(&message)) return offer->response_bytes;
  return 0;
}

}  // namespace longhaul::smb
