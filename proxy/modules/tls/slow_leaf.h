// SPDX-License-Identifier: Apache-2.0
// A certificate that is made with an authority's key in another device: on the key's thread, while far halves
// wait. It has copies of all that it needs, so they may end meanwhile.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "proxy/modules/held_key.h"
#include "proxy/modules/memory.h"
#include "proxy/modules/tls/mint.h"
#include "proxy/modules/tls/pem.h"

namespace longhaul::tls {

class SlowLeaf final : public std::enable_shared_from_this<SlowLeaf> {
 public:
  // The limit for all waits.
  static constexpr modules::Duration kSlowest = std::chrono::seconds(5);

  // `owner` keeps `mint` alive. `memory`: of all modules, in which this counts; null: nowhere.
  SlowLeaf(std::shared_ptr<const void> owner, const Mint& mint, const X509* server, std::string name,
           std::shared_ptr<modules::Memory> memory);
  // Returns false if too many requests wait for the key; that is an error of its own.
  bool begin(modules::HeldKey& held);
  // All below may be called only when it is.
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }

  // Why the key is not available. Empty if it is; then made() has the result.
  const std::string& failure() const { return failure_; }
  Mint::Minted made() const;

 private:
  void make(EVP_PKEY* key, const std::string& failure);

  const std::shared_ptr<const void> owner_;
  const Mint& mint_;
  const Certificate server_;
  const std::string name_;
  const modules::MemoryShare counted_;
  Mint::Minted made_;
  std::string failure_;
  std::atomic<bool> is_done_ = false;
};

}  // namespace longhaul::tls
