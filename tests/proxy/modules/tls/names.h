// SPDX-License-Identifier: Apache-2.0
// The names that a certificate has.
#pragma once
#include <openssl/x509v3.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/proxy/modules/tls/certificates.h"

namespace longhaul::tls {

// DNS names of subjectAltName, sorted.
inline std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  auto* const all = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    int kind = 0;
    const auto* const text = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all, i), &kind));
    if (kind == GEN_DNS)
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), ASN1_STRING_length(text));
  }
  GENERAL_NAMES_free(all);
  std::ranges::sort(names);
  return names;
}

}  // namespace longhaul::tls
