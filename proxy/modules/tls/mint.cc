// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/mint.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <new>
#include <set>

#include "proxy/modules/tls/leaf_names.h"
#include "proxy/modules/tls/slow_leaf.h"

namespace longhaul::tls {
namespace {

template <class T, void (*free_it)(T*)>
struct Freed {
  void operator()(T* object) const { free_it(object); }
};
template <class T, void (*free_it)(T*)>
using Owned = std::unique_ptr<T, Freed<T, free_it>>;
using GeneralNames = Owned<GENERAL_NAMES, GENERAL_NAMES_free>;
using Constraints = Owned<NAME_CONSTRAINTS, NAME_CONSTRAINTS_free>;

void must(bool is_done) {
  if (!is_done) throw std::bad_alloc();
}

Constraints constraints_of(const X509* authority) {
  return Constraints(static_cast<NAME_CONSTRAINTS*>(X509_get_ext_d2i(authority, NID_name_constraints, nullptr, nullptr)));
}

bool has_permitted_names(const Certificate& authority) {
  const Constraints found = constraints_of(authority.get());
  const auto* const permitted = found ? found->permittedSubtrees : nullptr;
  for (int i = 0; i < sk_GENERAL_SUBTREE_num(permitted); ++i)
    if (sk_GENERAL_SUBTREE_value(permitted, i)->base->type == GEN_DNS) return true;
  return false;
}

// Functions that build a certificate return false if OpenSSL refuses.

// RFC 5280, section 4.2.1.6; critical if there is no subject.
bool add_names(X509* out, std::span<const std::string> names) {
  const GeneralNames all(GENERAL_NAMES_new());
  must(all != nullptr);
  for (const std::string& name : names) {
    GENERAL_NAME* const one = GENERAL_NAME_new();
    ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
    must(one && text && ASN1_STRING_set(text, name.data(), static_cast<int>(name.size())) == 1);
    GENERAL_NAME_set0_value(one, GEN_DNS, text);
    must(sk_GENERAL_NAME_push(all.get(), one) > 0);
  }
  return X509_add1_ext_i2d(out, NID_subject_alt_name, all.get(), 1, X509V3_ADD_DEFAULT) == 1;
}

// Used only with constants.
bool add_extension(X509* out, int kind, const char* value) {
  const Owned<X509_EXTENSION, X509_EXTENSION_free> made(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value));
  return made && X509_add_ext(out, made.get(), -1) == 1;
}

// RFC 5280, section 4.2.1.1: by the authority's own key identifier.
bool add_issuer_key(X509* out, X509* authority) {
  const ASN1_OCTET_STRING* const id = X509_get0_subject_key_id(authority);
  if (!id) return true;
  const Owned<AUTHORITY_KEYID, AUTHORITY_KEYID_free> made(AUTHORITY_KEYID_new());
  must(made && (made->keyid = ASN1_OCTET_STRING_dup(id)) != nullptr);
  return X509_add1_ext_i2d(out, NID_authority_key_identifier, made.get(), 0, X509V3_ADD_DEFAULT) == 1;
}

bool is_before(const ASN1_TIME* a, const ASN1_TIME* b) { return ASN1_TIME_compare(a, b) == -1; }

// No longer than the server's and the authority's own validity.
bool set_validity(X509* out, const X509* server, const X509* authority) {
  using std::chrono::seconds;
  bool is_done = X509_gmtime_adj(X509_getm_notBefore(out), -static_cast<long>(seconds(Mint::kClocksDiffer).count())) &&
                 X509_gmtime_adj(X509_getm_notAfter(out), static_cast<long>(seconds(Mint::kValid).count()));
  for (const X509* each : {server, authority}) {
    // Each replaces the time that `out` had.
    if (is_before(X509_get0_notBefore(out), X509_get0_notBefore(each)))
      is_done = is_done && X509_set1_notBefore(out, X509_get0_notBefore(each)) == 1;
    if (is_before(X509_get0_notAfter(each), X509_get0_notAfter(out)))
      is_done = is_done && X509_set1_notAfter(out, X509_get0_notAfter(each)) == 1;
  }
  // As in RFC 5280, section 4.1.2.5, whatever the form of the others.
  return is_done && ASN1_TIME_normalize(X509_getm_notBefore(out)) == 1 && ASN1_TIME_normalize(X509_getm_notAfter(out)) == 1;
}

// RFC 5280, section 4.1.2.2: positive, at most 20 octets.
bool set_serial(X509* out) {
  const Owned<BIGNUM, BN_free> number(BN_new());
  return number && BN_rand(number.get(), 159, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(out)) != nullptr;
}

std::string digest_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  must(X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

// DNS names in subjectAltName; a common name does not count (RFC 9525, section 2).
std::set<std::string> common_names(const X509* server, std::span<const config::NamePattern> listed) {
  std::set<std::string> names;
  const GeneralNames all(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(server, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    int kind = 0;
    const void* const value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all.get(), i), &kind);
    if (kind != GEN_DNS) continue;
    const auto* const text = static_cast<const ASN1_STRING*>(value);
    add_common_names({reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<std::size_t>(ASN1_STRING_length(text))},
                     listed, names);
  }
  return names;
}

}  // namespace

config::TextResult<std::unique_ptr<Mint>> Mint::make(std::vector<Certificate> chain, Key key,
                                                     const std::string& file,
                                                     std::vector<config::NamePattern> listed,
                                                     std::shared_ptr<modules::HeldKey> held) {
  X509* const authority = chain.front().get();
  // RFC 5280, sections 4.2.1.9 and 4.2.1.3: basicConstraints has CA, keyUsage has keyCertSign if present.
  if (X509_check_ca(authority) != 1)
    return config::TextError{
        file + ": its first certificate is not that of a CA (CA:TRUE), which mode = \"mint\" requires."};
  if ((X509_get_extended_key_usage(authority) & XKU_SSL_SERVER) == 0)
    return config::TextError{
        file + ": its first certificate is not allowed to sign for servers (extendedKeyUsage)."};
  std::unique_ptr<Mint> mint(new Mint(std::move(chain), std::move(key), std::move(listed)));
  mint->held_ = std::move(held);
  return mint;
}

Mint::Mint(std::vector<Certificate> chain, Key key, std::vector<config::NamePattern> listed)
    : chain_(std::move(chain)), key_(std::move(key)), leaf_key_(EVP_EC_gen("P-256")), listed_(std::move(listed)) {
  must(leaf_key_ != nullptr);
}

std::string Mint::why_not() const {
  const X509* const authority = chain_.front().get();
  if (X509_cmp_current_time(X509_get0_notAfter(authority)) <= 0)
    return "the minting CA expired on " + date_of(X509_get0_notAfter(authority));
  if (X509_cmp_current_time(X509_get0_notBefore(authority)) >= 0)
    return "the minting CA is not valid before " + date_of(X509_get0_notBefore(authority));
  return {};
}

// Until its own end, too: the host's clock may have been set meanwhile.
bool Mint::is_good(modules::TimePoint now, const Kept& kept) {
  return now < kept.until && X509_cmp_current_time(X509_get0_notAfter(kept.leaf.get())) > 0;
}

std::shared_ptr<SlowLeaf> Mint::begin(modules::TimePoint now, std::shared_ptr<const void> owner,
                                      const X509* server, const std::string& name,
                                      std::shared_ptr<modules::Memory> memory) {
  if (!held_ || !why_not().empty()) return nullptr;
  const std::string digest = digest_of(server);
  if (const auto kept = kept_.find(digest); kept != kept_.end() && is_good(now, kept->second)) return nullptr;
  std::erase_if(making_, [](const auto& each) { return each.second.expired(); });
  auto& place = making_[digest + name];
  if (auto made = place.lock(); made && !made->is_done()) return made;
  auto made = std::make_shared<SlowLeaf>(std::move(owner), *this, server, name, std::move(memory));
  if (made->begin(*held_)) place = made;
  return made;
}

Mint::Minted Mint::leaf(modules::TimePoint now, const X509* server, const std::string& name,
                        const SlowLeaf* slow) {
  if (std::string why = why_not(); !why.empty()) return {.leaf = nullptr, .why_not = std::move(why)};
  std::string digest = digest_of(server);
  auto found = kept_.find(digest);
  if (found == kept_.end() || !is_good(now, found->second)) {
    Minted made = slow ? slow->made() : make_leaf(server, name, key_.get());
    ERR_clear_error();
    if (!made.leaf) return made;
    if (found == kept_.end()) {
      if (order_.size() == kMostLeaves) kept_.erase(order_.front()), order_.pop_front();
      order_.push_back(digest);
      found = kept_.try_emplace(std::move(digest)).first;
    }
    found->second = {.leaf = std::move(made.leaf), .until = now + kMadeAnew};
  }
  X509* const leaf = found->second.leaf.get();
  // The server's verification may be more lenient (a common name, a wildcard for a part of a label).
  if (X509_check_host(leaf, name.data(), name.size(), 0, nullptr) != 1)
    return {.leaf = nullptr,
            .why_not =
                "the server's certificate has no subject alternative name (SAN) for it that may be copied"};
  return {.leaf = new_reference(leaf), .why_not = {}};
}

Mint::Minted Mint::make_leaf(const X509* server, const std::string& name, EVP_PKEY* key) const {
  const auto none = [](const char* why) { return Minted{.leaf = nullptr, .why_not = why}; };
  if (!key) return none("the minting CA's key is not available");
  const std::set<std::string> common = common_names(server, listed_);
  if (common.size() > kMostNames)
    return none("the server's certificate has too many of the names in [[tls_server]]");
  std::vector<std::string> names;
  std::ranges::copy_if(common, std::back_inserter(names), [&](const std::string& each) { return permits(each); });
  if (common.contains(name) && std::ranges::find(names, name) == names.end())
    return none("the minting CA's name constraints do not permit it");
  if (names.empty())
    return none("the server's certificate has no subject alternative name (SAN) that may be copied");
  Certificate leaf = sign(names, server, key);
  // Clients would refuse it: the authority's chain is invalid.
  if (!leaf || !verifies(leaf.get()))
    return none("the minted certificate does not verify against the minting CA");
  return {.leaf = std::move(leaf), .why_not = {}};
}

Certificate Mint::sign(std::span<const std::string> names, const X509* server, EVP_PKEY* key) const {
  X509* const authority = chain_.front().get();
  Certificate leaf(X509_new());
  X509* const out = leaf.get();
  const bool hashes_itself = EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448");
  const bool is_made =
      out && X509_set_version(out, X509_VERSION_3) == 1 && X509_set_pubkey(out, leaf_key_.get()) == 1 &&
      X509_set_issuer_name(out, X509_get_subject_name(authority)) == 1 && set_serial(out) &&
      set_validity(out, server, authority) && add_names(out, names) &&
      add_extension(out, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(out, NID_key_usage, "critical,digitalSignature") &&
      add_extension(out, NID_ext_key_usage, "serverAuth") && add_issuer_key(out, authority) &&
      X509_sign(out, key, hashes_itself ? nullptr : EVP_sha256()) > 0;
  return is_made ? std::move(leaf) : nullptr;
}

// RFC 5280, section 4.2.1.10, for every authority in the file: one name that is not permitted would
// invalidate the others.
bool Mint::permits(const std::string& name) const {
  return std::ranges::all_of(chain_, [&](const Certificate& each) {
    const Constraints constraints = constraints_of(each.get());
    if (!constraints) return true;
    // OpenSSL checks only whole certificates: therefore one with this name alone, which is not used
    // otherwise.
    const Certificate alone(X509_new());
    return alone && X509_set_pubkey(alone.get(), leaf_key_.get()) == 1 && add_names(alone.get(), std::span(&name, 1)) &&
           X509_sign(alone.get(), leaf_key_.get(), EVP_sha256()) > 0 && X509_check_purpose(alone.get(), -1, 0) == 1 &&
           NAME_CONSTRAINTS_check(alone.get(), constraints.get()) == X509_V_OK;
  });
}

bool Mint::verifies(X509* leaf) const {
  const Owned<X509_STORE, X509_STORE_free> trusted(X509_STORE_new());
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> verification(X509_STORE_CTX_new());
  return trusted && verification && X509_STORE_add_cert(trusted.get(), chain_.front().get()) == 1 &&
         X509_STORE_set_flags(trusted.get(), X509_V_FLAG_PARTIAL_CHAIN) == 1 &&
         X509_STORE_CTX_init(verification.get(), trusted.get(), leaf, nullptr) == 1 &&
         X509_STORE_CTX_set_default(verification.get(), "ssl_server") == 1 && X509_verify_cert(verification.get()) == 1;
}

std::vector<std::string> Mint::warnings(const std::string& file) const {
  std::vector<std::string> all;
  if (std::string why = why_not(); !why.empty()) all.push_back(file + ": " + why + ", so nothing is decrypted.");
  if (std::ranges::none_of(chain_, has_permitted_names))
    all.push_back(file +
                  " is not limited to names (nameConstraints, permitted;DNS): anyone who steals its key can "
                  "impersonate any "
                  "server to the clients that trust it. docs/tls.md describes how to create a limited one.");
  for (const config::NamePattern& pattern : listed_)
    if (!permits((pattern.subdomains ? "name." : "") + pattern.name))
      all.push_back(file + " is not allowed to sign for " + pattern.to_text() +
                    " (nameConstraints): connections to it stay encrypted.");
  return all;
}

}  // namespace longhaul::tls
