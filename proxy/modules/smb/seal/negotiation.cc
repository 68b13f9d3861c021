// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/negotiation.h"

#include <openssl/rand.h>

#include <cstring>
#include <new>
#include <optional>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::seal {

using smb2::Dialect;

namespace {

namespace context = smb2::negotiate_context;
constexpr std::size_t kCapabilitiesOfAnswer = smb2::kHeaderBytes + 24;
constexpr std::size_t kSaltLengthAt = 2, kAlgorithmsOfPreauth = 4, kAlgorithmsOfCompression = 8;

// The only element of a message, whose bytes begin after the frame's head.
std::optional<Bytes> single_element(const Frame& frame) {
  if (frame.kind != FrameKind::smb2) return std::nullopt;
  const auto elements = smb2::parse_elements(frame.message());
  if (!elements || elements->size() != 1) return std::nullopt;
  return elements->front().bytes;
}

// A copy of a frame, and a mapping of bytes borrowed from the original.
class Copy {
 public:
  explicit Copy(const Frame& frame) : from_(frame.bytes.bytes()) {
    slice_ = Slice::unfilled(from_.size(), memory_);
    std::memcpy(memory_, from_.data(), from_.size());
  }
  std::byte* at(Bytes borrowed) { return memory_ + (borrowed.data() - from_.data()); }
  std::byte* message() { return memory_ + kFrameHeadBytes; }
  Frame frame() && { return {FrameKind::smb2, std::move(slice_)}; }

 private:
  Bytes from_;
  std::byte* memory_ = nullptr;
  Slice slice_;
};

// 2.2.3.1.1: HashAlgorithmCount, SaltLength, the algorithms, the salt. Returns whether there is a salt.
bool change_salt(Copy& copy, Bytes data) {
  if (data.size() < kAlgorithmsOfPreauth) return false;
  const std::size_t algorithms = 2u * load_le<std::uint16_t>(data, 0);
  const std::size_t size = load_le<std::uint16_t>(data, kSaltLengthAt);
  // Eight bytes at least, so that no two legs can have the same.
  if (size < 8 || data.size() < kAlgorithmsOfPreauth + algorithms + size) return false;
  std::byte* const salt = copy.at(data.subspan(kAlgorithmsOfPreauth + algorithms));
  if (RAND_bytes(reinterpret_cast<unsigned char*>(salt), static_cast<int>(size)) != 1) throw std::bad_alloc();
  return true;
}

// 2.2.3.1.3: CompressionAlgorithmCount, padding, flags, the algorithms; zero stands for none.
void remove_compression(Copy& copy, Bytes data) {
  if (data.size() <= kAlgorithmsOfCompression) return;
  const Bytes algorithms = data.subspan(kAlgorithmsOfCompression);
  std::memset(copy.at(algorithms), 0, algorithms.size());
}

// The first entry of a list after its count: the server's choice.
std::optional<std::uint16_t> chosen(Bytes data) {
  if (data.size() < 4 || load_le<std::uint16_t>(data, 0) == 0) return std::nullopt;
  return load_le<std::uint16_t>(data, 2);
}

// Whether the client requires signatures.
std::optional<bool> requires_signing(const Frame* request) {
  if (!request) return false;
  const auto element = single_element(*request);
  if (!element) return std::nullopt;
  const auto asked = smb2::parse_negotiate_request(*element);
  if (!asked) return std::nullopt;
  return (asked->security_mode & smb2::security_mode::signing_required) != 0;
}

}  // namespace

Frame request_for_server(const Frame& request) {
  const auto element = single_element(request);
  const auto parsed = element ? smb2::parse_negotiate_request(*element) : Error::malformed_record;
  if (!parsed || parsed->contexts.empty()) return request;
  Copy copy(request);
  for (const smb2::NegotiateContext& each : parsed->contexts) {
    if (each.type == context::preauth_integrity) (void)change_salt(copy, each.data);
    if (each.type == context::compression) remove_compression(copy, each.data);
  }
  return std::move(copy).frame();
}

Result<AnswerForClient> answer_for_client(const Frame* request, const Frame& answer) {
  const auto client_requires = requires_signing(request);
  const auto element = single_element(answer);
  if (!client_requires || !element) return Error::malformed_record;
  const auto parsed = smb2::parse_negotiate_response(*element);
  if (!parsed) return parsed.error();

  AnswerForClient result{.frame = answer, .agreement = {.dialect = parsed->dialect}};
  Agreement& agreement = result.agreement;
  agreement.must_sign = *client_requires || parsed->signing_required();
  if (parsed->dialect < Dialect::smb_3_0) return result;
  agreement.signing = Signing::aes_cmac;
  if (parsed->dialect < Dialect::smb_3_1_1) {
    agreement.cipher = Cipher::aes_128_ccm;
    return result;
  }
  Copy copy(answer);
  for (const smb2::NegotiateContext& each : parsed->contexts) {
    if (each.type == context::preauth_integrity) result.changed = change_salt(copy, each.data);
    if (each.type == context::encryption)
      if (const auto cipher = chosen(each.data)) agreement.cipher = static_cast<Cipher>(*cipher);
    if (each.type == context::signing)
      if (const auto signing = chosen(each.data)) agreement.signing = static_cast<Signing>(*signing);
  }
  if (!result.changed || agreement.cipher > Cipher::aes_256_gcm || agreement.signing > Signing::aes_gmac)
    return Error::malformed_record;
  store_le(copy.message() + kCapabilitiesOfAnswer,
           parsed->capabilities & ~smb2::capabilities::multi_channel);
  result.frame = std::move(copy).frame();
  return result;
}

}  // namespace longhaul::smb::seal
