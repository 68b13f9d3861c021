// SPDX-License-Identifier: Apache-2.0
// What signatures and encryption of SMB2 cost on one core: WRITEs of one size that the near half's leg opens
// and the far half's leg protects again, in pieces of 64 KiB as the link delivers them. Prints a line of JSON
// for each algorithm and size; seconds of CPU time per GB, which a file needs once at each site.
#include <malloc.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/seal/leg.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::seal;

namespace {

constexpr smb2::SessionId kSession = 9;
constexpr std::size_t kTotalBytes = 256 << 20, kPieceBytes = 64 << 10;
constexpr std::size_t kFrontBytes = kFrameHeadBytes + smb2::kHeaderBytes;

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void demand(bool so, const char* what) {
  if (so) return;
  std::fprintf(stderr, "seal_speed: %s\n", what);
  std::exit(1);
}

struct Algorithm {
  const char* name;
  Agreement agreement;
  bool encrypts;
};
const Algorithm kAlgorithms[] = {
    {"2.1 HMAC-SHA256", {.dialect = smb2::Dialect::smb_2_1}, false},
    {"3.0 AES-CMAC", {.dialect = smb2::Dialect::smb_3_0, .signing = Signing::aes_cmac}, false},
    {"3.1.1 AES-GMAC", {.dialect = smb2::Dialect::smb_3_1_1, .signing = Signing::aes_gmac}, false},
    {"3.0 AES-128-CCM",
     {.dialect = smb2::Dialect::smb_3_0, .signing = Signing::aes_cmac, .cipher = Cipher::aes_128_ccm},
     true},
    {"3.1.1 AES-128-GCM",
     {.dialect = smb2::Dialect::smb_3_1_1, .signing = Signing::aes_gmac, .cipher = Cipher::aes_128_gcm},
     true},
};

SessionKeys keys_for(Cipher cipher) {
  SessionKeys keys;
  keys.signing.bytes.fill(std::byte{1});
  if (cipher == Cipher::none) return keys;
  for (SecretBytes* key : {&keys.to_server, &keys.to_client}) {
    *key = SecretBytes(key_bytes(cipher));
    std::memset(key->data(), 2, key->size());
  }
  return keys;
}

Slice message(std::uint64_t id, std::uint32_t flags, std::size_t body) {
  Buffer header;
  smb2::write_header({.credit_charge = 1,
                      .command = smb2::Command::write,
                      .credits = 1,
                      .flags = flags,
                      .message_id = smb2::MessageId{id},
                      .tree_id = 1,
                      .session_id = kSession},
                     header);
  std::byte* memory = nullptr;
  Slice frame = Slice::unfilled(kFrontBytes + body, memory);
  write_frame_head(smb2::kHeaderBytes + body, memory);
  std::memcpy(memory + kFrameHeadBytes, header.data(), header.size());
  std::memset(memory + kFrontBytes, 0x5a, body);
  return frame;
}

// The client itself.
class Client {
 public:
  explicit Client(const Algorithm& algorithm)
      : signer_(algorithm.agreement.signing, keys_for(algorithm.agreement.cipher).signing) {
    if (algorithm.encrypts)
      transform_.emplace(algorithm.agreement.cipher, keys_for(algorithm.agreement.cipher).to_server);
  }
  Frame request(std::uint64_t id, std::size_t size) {
    if (transform_) {
      const Slice plain = message(id, 0, size);
      const Bytes whole = plain.bytes().subspan(kFrameHeadBytes);
      return {FrameKind::smb2_transform, transform_->seal(kSession, std::span(&whole, 1), whole.size())};
    }
    const Slice plain = message(id, smb2::header_flags::is_signed, size);
    const Bytes body = plain.bytes().subspan(kFrontBytes);
    const Signature signature =
        signer_.sign(plain.bytes().subspan(kFrameHeadBytes, smb2::kHeaderBytes), std::span(&body, 1));
    std::byte* memory = nullptr;
    Slice frame = Slice::unfilled(plain.size(), memory);
    std::memcpy(memory, plain.bytes().data(), plain.size());
    std::copy(signature.begin(), signature.end(), memory + kFrameHeadBytes + smb2::header_at::signature);
    return {FrameKind::smb2, std::move(frame)};
  }

 private:
  Signer signer_;
  std::optional<Transform> transform_;
};

void measure(const Algorithm& algorithm, std::size_t size) {
  Client client(algorithm);
  Leg near(Leg::To::client), far(Leg::To::server);
  const SessionKeys keys = keys_for(algorithm.agreement.cipher);
  demand(near.begin(kSession, algorithm.agreement, keys) && far.begin(kSession, algorithm.agreement, keys),
         "no session");
  double open = 0, seal = 0;
  std::uint64_t id = 0;
  for (std::size_t done = 0; done < kTotalBytes; done += size) {
    Frame request = client.request(++id, size);
    const double began = cpu_seconds();
    auto opened = near.open(request);
    request.bytes = {};
    const double between = cpu_seconds();
    demand(opened.has_value(), "a request was refused");
    std::vector<Slice> out;
    for (std::size_t at = 0; at < opened->bytes.size(); at += kPieceBytes)
      demand(
          far.seal(opened->bytes.sub(at, std::min(kPieceBytes, opened->bytes.size() - at)), out).has_value(),
          "a request was not protected");
    out.clear();
    seal += cpu_seconds() - between;
    open += between - began;
  }
  const double gigabytes = static_cast<double>(kTotalBytes) / 1e9;
  std::printf("{\"algorithm\": \"%s\", \"bytes\": %zu, \"open\": %.3f, \"seal\": %.3f, \"both\": %.3f}\n",
              algorithm.name, size, open / gigabytes, seal / gigabytes, (open + seal) / gigabytes);
}

}  // namespace

int main() {
  // As the daemon (process/tuning.cc).
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  for (const Algorithm& algorithm : kAlgorithms)
    for (const std::size_t size : {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{8} << 20})
      measure(algorithm, size);
}
