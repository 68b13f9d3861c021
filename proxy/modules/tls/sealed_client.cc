// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/sealed_client.h"

#include <array>
#include <utility>

namespace longhaul::tls {
namespace {

// RFC 8446, section 6.
constexpr std::uint8_t kUnexpectedMessage = 10, kBadRecordMac = 20, kDecodeError = 50, kNoRenegotiation = 100;
constexpr std::uint8_t kWarning = 1, kFatal = 2;
// Limit of a client's records without data: that many, and one more for that many bytes of data.
constexpr std::uint64_t kMostWithoutData = 32, kDataForOneWithout = 64 << 10;
// Section 5.5 allows AES-GCM 2^24.5 full records for one key.
constexpr std::uint64_t kMostBytesPerKey = 64ull << 30;
// Four full records; more would only use memory.
constexpr std::size_t kMostTogether = 4 * kMaxRecordContent;
// RFC 8446, section 4.6.3: update_not_requested.
constexpr std::array kKeyUpdate{std::byte{24}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0}};

}  // namespace

SealedClient::Next SealedClient::read(Records& records, Buffer& plain) {
  Bytes record;
  for (;;) {
    const auto next = records.next(record);
    if (next == Records::Next::nothing) return Next::more;
    if (next == Records::Next::invalid || !layer_.may_come(record)) return fail(kUnexpectedMessage);
    const std::size_t before = plain.size();
    const auto type = layer_.open(record, plain);
    if (!type) return fail(kBadRecordMac);
    const std::size_t size = plain.size() - before;
    if (*type == ContentType::application_data && size > 0) {
      opened_bytes_ += size;
      continue;
    }
    // A change of keys costs as much as many bytes.
    if (++without_data_ > kMostWithoutData + opened_bytes_ / kDataForOneWithout)
      return fail(kUnexpectedMessage);
    if (*type == ContentType::application_data) continue;
    Buffer control(plain.begin() + static_cast<std::ptrdiff_t>(before), plain.end());
    plain.resize(before);
    const Next after = *type == ContentType::alert       ? on_alert(control)
                       : *type == ContentType::handshake ? on_handshake_message(control)
                                                         : fail(kUnexpectedMessage);
    if (after != Next::more) return after;
  }
}

// RFC 8446, section 6.1: user_canceled announces close_notify. RFC 5246, section 7.2: other warnings.
SealedClient::Next SealedClient::on_alert(Bytes alert) {
  if (alert.size() != 2) return fail(kDecodeError);
  if (alert[1] == std::byte{kCloseNotify}) return Next::closed;
  const auto [at, value] = layer_.is_1_2() ? std::pair(0, kWarning) : std::pair(1, kUserCanceled);
  if (alert[at] == std::byte{value}) return Next::more;
  alert_heard_ = std::to_integer<std::uint8_t>(alert[1]);
  return Next::aborted;
}

SealedClient::Next SealedClient::on_handshake_message(Bytes message) {
  if (layer_.is_1_2()) {  // RFC 5246, section 7.2.2
    seal(ContentType::alert, std::array{std::byte{kWarning}, std::byte{kNoRenegotiation}});
    return Next::more;
  }
  const bool is_update = message.size() == 5 && message[0] == std::byte{24} && message[1] == std::byte{0} &&
                         message[2] == std::byte{0} && message[3] == std::byte{1} &&
                         message[4] <= std::byte{1};
  if (!is_update) return fail(kUnexpectedMessage);
  layer_.update_client();
  if (message[4] == std::byte{1}) update_keys();
  return Next::more;
}

SealedClient::Next SealedClient::fail(std::uint8_t description) {
  alert(description);
  return Next::failed;
}

void SealedClient::alert(std::uint8_t description) {
  flush();
  seal(ContentType::alert, std::array{std::byte{kFatal}, std::byte{description}});
}

void SealedClient::update_keys() {
  seal(ContentType::handshake, kKeyUpdate);
  layer_.update_server();
  sealed_bytes_ = 0;
}

void SealedClient::seal(ContentType type, std::span<const Bytes> pieces) {
  Buffer sealed;
  if (!layer_.seal(type, pieces, sealed)) return out_.abort();
  out_.to_lan(Slice::copy_of(sealed));
}

void SealedClient::send(Slice plain) {
  if (plain.empty()) return;
  unsealed_bytes_ += plain.size();
  unsealed_.push_back(std::move(plain));
  if (unsealed_bytes_ >= kMostTogether) flush();
}

void SealedClient::flush() {
  if (unsealed_bytes_ == 0) return;
  const std::vector<Slice> slices = std::exchange(unsealed_, {});
  std::vector<Bytes> pieces;
  for (const Slice& slice : slices) pieces.push_back(slice.bytes());
  if (sealed_bytes_ > kMostBytesPerKey && !layer_.is_1_2()) update_keys();
  sealed_bytes_ += std::exchange(unsealed_bytes_, 0);
  seal(ContentType::application_data, pieces);
}

void SealedClient::close() {
  flush();
  seal(ContentType::alert, std::array{std::byte{kWarning}, std::byte{kCloseNotify}});
}

}  // namespace longhaul::tls
