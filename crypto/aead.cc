// SPDX-License-Identifier: Apache-2.0
#include "crypto/aead.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/objects.h>
#include <openssl/params.h>

#include <algorithm>
#include <cassert>
#include <new>

#ifdef LONGHAUL_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

namespace longhaul {
namespace {

const unsigned char* raw(Bytes bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* raw(MutableBytes bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

class OpensslAead final : public Aead {
 public:
  OpensslAead(int nid, std::span<const unsigned char> key, Use use)
      : cipher_(EVP_CIPHER_fetch(nullptr, OBJ_nid2sn(nid), nullptr)),
        context_(EVP_CIPHER_CTX_new()),
        use_(use) {
    if (!cipher_ || !context_ ||
        EVP_CipherInit_ex2(context_.get(), cipher_.get(), key.data(), nullptr, use == Use::seal, nullptr) !=
            1)
      throw std::bad_alloc();
  }

  bool start(Nonce nonce, std::span<const unsigned char> associated) override {
    int written = 0;
    return EVP_CipherInit_ex2(context_.get(), nullptr, nullptr, nonce.data(), use_ == Use::seal, nullptr) ==
               1 &&
           EVP_CipherUpdate(context_.get(), nullptr, &written, associated.data(),
                            static_cast<int>(associated.size())) == 1;
  }
  bool add(Bytes text, unsigned char* out) override {
    int written = 0;
    return EVP_CipherUpdate(context_.get(), out, &written, raw(text), static_cast<int>(text.size())) == 1;
  }
  bool seal(unsigned char* tag) override {
    unsigned char none[16];
    int written = 0;
    const OSSL_PARAM get[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, kAeadTagBytes),
        OSSL_PARAM_construct_end()};
    return EVP_CipherFinal_ex(context_.get(), none, &written) == 1 &&
           EVP_CIPHER_CTX_get_params(context_.get(), const_cast<OSSL_PARAM*>(get)) == 1;
  }
  bool open(const unsigned char* tag) override {
    unsigned char none[16];
    int written = 0;
    const OSSL_PARAM set[] = {OSSL_PARAM_construct_octet_string(
                                  OSSL_CIPHER_PARAM_AEAD_TAG, const_cast<unsigned char*>(tag), kAeadTagBytes),
                              OSSL_PARAM_construct_end()};
    return EVP_CIPHER_CTX_set_params(context_.get(), set) == 1 &&
           EVP_CipherFinal_ex(context_.get(), none, &written) == 1;
  }

 private:
  struct Free {
    void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  std::unique_ptr<EVP_CIPHER, Free> cipher_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
  Use use_;
};

#ifdef LONGHAUL_IPSEC_MB

// The library's implementation for this processor: a table of functions. Null if it is not faster than
// OpenSSL.
IMB_MGR* vector_functions() {
  thread_local const std::unique_ptr<IMB_MGR, decltype(&free_mb_mgr)> manager = [] {
    std::unique_ptr<IMB_MGR, decltype(&free_mb_mgr)> made(alloc_mb_mgr(0), &free_mb_mgr);
    constexpr std::uint64_t kNeeded =
        IMB_FEATURE_AVX512_SKX | IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ | IMB_FEATURE_SAFE_DATA;
    if (!made || (made->features & kNeeded) != kNeeded) return decltype(made)(nullptr, &free_mb_mgr);
    init_mb_mgr_avx512(made.get());
    if (imb_get_errno(made.get()) != 0) made.reset();
    return made;
  }();
  return manager.get();
}

// The library's functions for one size of key, as members of its table.
struct Aes128Gcm {
  static constexpr std::size_t kKeyBytes = 16;
  static constexpr auto kPrepare = &IMB_MGR::gcm128_pre;
  static constexpr auto kStart = &IMB_MGR::gcm128_init;
  static constexpr auto kSealSome = &IMB_MGR::gcm128_enc_update, kOpenSome = &IMB_MGR::gcm128_dec_update;
  static constexpr auto kSealEnd = &IMB_MGR::gcm128_enc_finalize, kOpenEnd = &IMB_MGR::gcm128_dec_finalize;
  static constexpr auto kSealWhole = &IMB_MGR::gcm128_enc, kOpenWhole = &IMB_MGR::gcm128_dec;
};
struct Aes256Gcm {
  static constexpr std::size_t kKeyBytes = 32;
  static constexpr auto kPrepare = &IMB_MGR::gcm256_pre;
  static constexpr auto kStart = &IMB_MGR::gcm256_init;
  static constexpr auto kSealSome = &IMB_MGR::gcm256_enc_update, kOpenSome = &IMB_MGR::gcm256_dec_update;
  static constexpr auto kSealEnd = &IMB_MGR::gcm256_enc_finalize, kOpenEnd = &IMB_MGR::gcm256_dec_finalize;
  static constexpr auto kSealWhole = &IMB_MGR::gcm256_enc, kOpenWhole = &IMB_MGR::gcm256_dec;
};

template <class Gcm>
class VectorGcm final : public Aead {
 public:
  VectorGcm(IMB_MGR* functions, std::span<const unsigned char> key, Use use)
      : functions_(functions), opens_(use == Use::open) {
    assert(key.size() == Gcm::kKeyBytes);
    (functions_->*Gcm::kPrepare)(key.data(), &key_);
  }
  ~VectorGcm() override {
    OPENSSL_cleanse(&key_, sizeof key_);
    OPENSSL_cleanse(&context_, sizeof context_);
  }

  bool start(Nonce nonce, std::span<const unsigned char> associated) override {
    (functions_->*Gcm::kStart)(&key_, &context_, nonce.data(), associated.data(), associated.size());
    return true;
  }
  bool add(Bytes text, unsigned char* out) override {
    (functions_->*(opens_ ? Gcm::kOpenSome : Gcm::kSealSome))(&key_, &context_, out, raw(text), text.size());
    return true;
  }
  bool seal(unsigned char* tag) override {
    (functions_->*Gcm::kSealEnd)(&key_, &context_, tag, kAeadTagBytes);
    return true;
  }
  bool open(const unsigned char* tag) override {
    unsigned char found[kAeadTagBytes];
    (functions_->*Gcm::kOpenEnd)(&key_, &context_, found, kAeadTagBytes);
    return CRYPTO_memcmp(found, tag, kAeadTagBytes) == 0;
  }
  bool seal_whole(Nonce nonce, std::span<const unsigned char> associated, MutableBytes text,
                  unsigned char* tag) override {
    (functions_->*Gcm::kSealWhole)(&key_, &context_, raw(text), raw(text), text.size(), nonce.data(),
                                   associated.data(), associated.size(), tag, kAeadTagBytes);
    return true;
  }
  bool open_whole(Nonce nonce, std::span<const unsigned char> associated, MutableBytes text,
                  const unsigned char* tag) override {
    unsigned char found[kAeadTagBytes];
    (functions_->*Gcm::kOpenWhole)(&key_, &context_, raw(text), raw(text), text.size(), nonce.data(),
                                   associated.data(), associated.size(), found, kAeadTagBytes);
    return CRYPTO_memcmp(found, tag, kAeadTagBytes) == 0;
  }

 private:
  IMB_MGR* functions_;
  bool opens_;
  alignas(64) gcm_key_data key_{};  // the library reads whole vectors, but its types have a smaller alignment
  alignas(64) gcm_context_data context_{};
};

class VectorChaCha final : public Aead {
 public:
  VectorChaCha(IMB_MGR* functions, std::span<const unsigned char> key, Use use)
      : functions_(functions), opens_(use == Use::open) {
    std::copy_n(key.begin(), sizeof key_, key_);
  }
  ~VectorChaCha() override {
    OPENSSL_cleanse(key_, sizeof key_);
    OPENSSL_cleanse(&context_, sizeof context_);
  }

  bool start(Nonce nonce, std::span<const unsigned char> associated) override {
    IMB_CHACHA20_POLY1305_INIT(functions_, key_, &context_, nonce.data(), associated.data(),
                               associated.size());
    return true;
  }
  bool add(Bytes text, unsigned char* out) override {
    if (opens_) {
      IMB_CHACHA20_POLY1305_DEC_UPDATE(functions_, key_, &context_, out, raw(text), text.size());
    } else {
      IMB_CHACHA20_POLY1305_ENC_UPDATE(functions_, key_, &context_, out, raw(text), text.size());
    }
    return true;
  }
  bool seal(unsigned char* tag) override {
    IMB_CHACHA20_POLY1305_ENC_FINALIZE(functions_, &context_, tag, kAeadTagBytes);
    return true;
  }
  bool open(const unsigned char* tag) override {
    unsigned char found[kAeadTagBytes];
    IMB_CHACHA20_POLY1305_DEC_FINALIZE(functions_, &context_, found, kAeadTagBytes);
    return CRYPTO_memcmp(found, tag, kAeadTagBytes) == 0;
  }

 private:
  IMB_MGR* functions_;
  bool opens_;
  alignas(64) unsigned char key_[32];
  alignas(64) chacha20_poly1305_context_data context_{};
};

#endif

}  // namespace

bool Aead::seal_whole(Nonce nonce, std::span<const unsigned char> associated, MutableBytes text,
                      unsigned char* tag) {
  return start(nonce, associated) && add(text, raw(text)) && seal(tag);
}

bool Aead::open_whole(Nonce nonce, std::span<const unsigned char> associated, MutableBytes text,
                      const unsigned char* tag) {
  return start(nonce, associated) && add(text, raw(text)) && open(tag);
}

std::unique_ptr<Aead> make_openssl_aead(int nid, std::span<const unsigned char> key, Aead::Use use) {
  return std::make_unique<OpensslAead>(nid, key, use);
}

std::unique_ptr<Aead> make_vector_aead([[maybe_unused]] int nid,
                                       [[maybe_unused]] std::span<const unsigned char> key,
                                       [[maybe_unused]] Aead::Use use) {
#ifdef LONGHAUL_IPSEC_MB
  IMB_MGR* functions = vector_functions();
  if (!functions) return nullptr;
  if (nid == NID_chacha20_poly1305) return std::make_unique<VectorChaCha>(functions, key, use);
  if (nid == NID_aes_128_gcm) return std::make_unique<VectorGcm<Aes128Gcm>>(functions, key, use);
  if (nid == NID_aes_256_gcm) return std::make_unique<VectorGcm<Aes256Gcm>>(functions, key, use);
#endif
  return nullptr;
}

std::unique_ptr<Aead> make_aead(int nid, std::span<const unsigned char> key, Aead::Use use) {
  auto vector = make_vector_aead(nid, key, use);
  return vector ? std::move(vector) : make_openssl_aead(nid, key, use);
}

}  // namespace longhaul
