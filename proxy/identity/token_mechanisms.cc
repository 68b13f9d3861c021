// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/token_mechanisms.h"

#include <openssl/obj_mac.h>

#include <algorithm>
#include <array>
#include <vector>

namespace longhaul::identity {
namespace {

struct Hash {
  int nid;
  CK_MECHANISM_TYPE alone, with_pkcs1, with_pss;
  CK_RSA_PKCS_MGF_TYPE mask;
  CK_ULONG size;
};
constexpr std::array kHashes{
    Hash{NID_sha256, CKM_SHA256, CKM_SHA256_RSA_PKCS, CKM_SHA256_RSA_PKCS_PSS, CKG_MGF1_SHA256, 32},
    Hash{NID_sha384, CKM_SHA384, CKM_SHA384_RSA_PKCS, CKM_SHA384_RSA_PKCS_PSS, CKG_MGF1_SHA384, 48},
    Hash{NID_sha512, CKM_SHA512, CKM_SHA512_RSA_PKCS, CKM_SHA512_RSA_PKCS_PSS, CKG_MGF1_SHA512, 64}};

struct Named {
  CK_MECHANISM_TYPE type;
  const char* name;
};
// As many of them as are needed together.
using Set = std::vector<Named>;
const std::vector<Set>& sets_of(bool is_rsa) {
  static const std::vector<Set> of_ec{{{CKM_ECDSA, "CKM_ECDSA"}}};
  static const std::vector<Set> of_rsa{
      {{CKM_RSA_PKCS, "CKM_RSA_PKCS"}, {CKM_RSA_PKCS_PSS, "CKM_RSA_PKCS_PSS"}},
      {{CKM_RSA_PKCS, "CKM_RSA_PKCS"}, {CKM_RSA_X_509, "CKM_RSA_X_509"}},
      {{CKM_SHA256_RSA_PKCS, "CKM_SHA256_RSA_PKCS"},
       {CKM_SHA384_RSA_PKCS, "CKM_SHA384_RSA_PKCS"},
       {CKM_SHA512_RSA_PKCS, "CKM_SHA512_RSA_PKCS"},
       {CKM_SHA256_RSA_PKCS_PSS, "CKM_SHA256_RSA_PKCS_PSS"},
       {CKM_SHA384_RSA_PKCS_PSS, "CKM_SHA384_RSA_PKCS_PSS"},
       {CKM_SHA512_RSA_PKCS_PSS, "CKM_SHA512_RSA_PKCS_PSS"}}};
  return is_rsa ? of_rsa : of_ec;
}

std::string names_of(const Set& set) {
  std::string text;
  for (const Named& each : set) (text += text.empty() ? "" : ", ") += each.name;
  return text;
}

}  // namespace

std::string sign_with(Token& token, Signer::Kind kind, int hash, Bytes data, std::span<unsigned char> out,
                      std::size_t& size) {
  using Kind = Signer::Kind;
  const auto sign = [&](CK_MECHANISM_TYPE type, void* parameter = nullptr, CK_ULONG parameter_size = 0) {
    return token.sign({type, parameter, parameter_size}, data, out, size);
  };
  if (kind == Kind::rsa_pkcs1) return sign(CKM_RSA_PKCS);
  if (kind == Kind::rsa_padded) return sign(CKM_RSA_X_509);
  if (kind == Kind::ecdsa) return sign(CKM_ECDSA);
  const auto* const found = std::ranges::find(kHashes, hash, &Hash::nid);
  if (found == kHashes.end()) return "the hash is not supported";
  if (kind == Kind::rsa_pkcs1_text) return sign(found->with_pkcs1);
  CK_RSA_PKCS_PSS_PARAMS padding{found->alone, found->mask, found->size};
  return sign(kind == Kind::rsa_pss_text ? found->with_pss : CKM_RSA_PKCS_PSS, &padding, sizeof padding);
}

std::string missing_mechanisms(const Token& token, bool is_rsa) {
  std::string text;
  for (const Set& set : sets_of(is_rsa)) {
    Set missing;
    std::ranges::copy_if(set, std::back_inserter(missing),
                         [&](const Named& each) { return !token.has(each.type); });
    if (missing.empty()) return {};
    text += (text.empty() ? "it needs " : ", or ") + names_of(set) + " (it lacks " + names_of(missing) + ")";
  }
  return text;
}

}  // namespace longhaul::identity
