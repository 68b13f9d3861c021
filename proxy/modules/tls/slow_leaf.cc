// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/slow_leaf.h"

#include <openssl/err.h>

#include <utility>

namespace longhaul::tls {
namespace {

constexpr std::uint64_t kLeafBytes = 8 * 1024;  // two certificates, about

}  // namespace

SlowLeaf::SlowLeaf(std::shared_ptr<const void> owner, const Mint& mint, const X509* server, std::string name,
                   std::shared_ptr<modules::Memory> memory)
    : owner_(std::move(owner)),
      mint_(mint),
      server_(new_reference(const_cast<X509*>(server))),
      name_(std::move(name)),
      counted_(std::move(memory), kLeafBytes) {}

bool SlowLeaf::begin(modules::HeldKey& held) {
  if (held.run([self = shared_from_this()](EVP_PKEY* key, const std::string& failure) {
        self->make(key, failure);
      }))
    return true;
  make(nullptr, "too many handshakes are waiting for the token");
  return false;
}

void SlowLeaf::make(EVP_PKEY* key, const std::string& failure) {
  if (key) made_ = mint_.make_leaf(server_.get(), name_, key);
  ERR_clear_error();
  failure_ = failure;
  is_done_.store(true, std::memory_order_release);
}

Mint::Minted SlowLeaf::made() const {
  return {.leaf = made_.leaf ? new_reference(made_.leaf.get()) : nullptr, .why_not = made_.why_not};
}

}  // namespace longhaul::tls
