// SPDX-License-Identifier: Apache-2.0
// Makes certificates from an operator's own authority (mode = "mint"), for servers whose key is not
// available. One for each verified certificate of a server, with no name that is missing in that certificate
// or in the table. It verifies nothing: the caller does.
#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proxy/config/name_pattern.h"
#include "proxy/config/text_error.h"
#include "proxy/modules/held_key.h"
#include "proxy/modules/memory.h"
#include "proxy/modules/module.h"
#include "proxy/modules/tls/pem.h"

namespace longhaul::tls {

class SlowLeaf;

class Mint {
 public:
  static constexpr std::size_t kMostLeaves = 64;  // stored; beyond that, the oldest is forgotten
  static constexpr std::size_t kMostNames = 256;  // of one certificate; a server with more names gets none
  // Long enough for clients to keep connections and sessions, short enough that revocation is not needed.
  static constexpr std::chrono::hours kValid{7 * 24}, kMadeAnew{24};
  static constexpr std::chrono::hours kClocksDiffer{24};  // differences of clients' clocks

  // `chain`: the authority, then those between it and its root, not empty; it is called `file` in messages.
  // An error says why it cannot be used. `held`: another device has the authority's key, and `key` is null.
  // Throws std::bad_alloc.
  static config::TextResult<std::unique_ptr<Mint>> make(std::vector<Certificate> chain, Key key,
                                                        const std::string& file,
                                                        std::vector<config::NamePattern> listed,
                                                        std::shared_ptr<modules::HeldKey> held = nullptr);

  struct Minted {
    Certificate leaf;     // null if there is none
    std::string why_not;  // for display, if there is none
  };
  // What has to be waited for before leaf(); null: nothing. `owner` keeps this alive; `memory`: SlowLeaf.
  std::shared_ptr<SlowLeaf> begin(modules::TimePoint now, std::shared_ptr<const void> owner,
                                  const X509* server, const std::string& name,
                                  std::shared_ptr<modules::Memory> memory);
  // For a server whose certificate was verified for that name. The leaf's key is key(). `slow`: what begin()
  // gave; it is done, and its key was available. Throws std::bad_alloc.
  Minted leaf(modules::TimePoint now, const X509* server, const std::string& name,
              const SlowLeaf* slow = nullptr);
  // Not kept; any thread may call it. `key`: the authority's.
  Minted make_leaf(const X509* server, const std::string& name, EVP_PKEY* key) const;
  // Why no leaf can be made now for any server: the authority's validity. Empty if one can be made.
  std::string why_not() const;

  EVP_PKEY* key() const { return leaf_key_.get(); }
  const std::vector<Certificate>& chain() const { return chain_; }
  // Warnings for the operator about the authority, as sentences.
  std::vector<std::string> warnings(const std::string& file) const;

 private:
  Mint(std::vector<Certificate> chain, Key key, std::vector<config::NamePattern> listed);

  // Returns null if OpenSSL refuses.
  Certificate sign(std::span<const std::string> names, const X509* server, EVP_PKEY* key) const;
  bool permits(const std::string& name) const;
  bool verifies(X509* leaf) const;

  std::vector<Certificate> chain_;
  Key key_;       // of the authority; null: held_ has it
  Key leaf_key_;  // of every leaf
  std::vector<config::NamePattern> listed_;
  std::shared_ptr<modules::HeldKey> held_;
  struct Kept {
    Certificate leaf;
    modules::TimePoint until;
  };
  static bool is_good(modules::TimePoint now, const Kept& kept);
  std::map<std::string, Kept> kept_;  // by the digest of the server's certificate
  std::deque<std::string> order_;     // keys of kept_, the oldest first
  std::map<std::string, std::weak_ptr<SlowLeaf>> making_;  // by that digest and the name
};

}  // namespace longhaul::tls
