// SPDX-License-Identifier: Apache-2.0
// Owns nftables tables that die with this process, `kill -9` included: the kernel removes a table with
// `flags owner` when the netlink socket that made it is closed. What stands in a table is nft_rules.h's
// business.
#pragma once
#include <memory>
#include <string>

#include "proxy/config/text_error.h"

struct nft_ctx;

namespace longhaul::intercept {

class NftTable {
 public:
  NftTable();  // without a socket until the first command
  ~NftTable();

  // Runs commands as nft(8) reads them, all or nothing; 0.2 ms for a small one. The error is one line.
  config::TextResult<void> run(const std::string& commands);
  // Removes every owned table that was made here.
  void close();

 private:
  struct Free {
    void operator()(nft_ctx* context) const;
  };
  std::unique_ptr<nft_ctx, Free> context_;
};

}  // namespace longhaul::intercept
