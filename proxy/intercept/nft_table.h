// SPDX-License-Identifier: Apache-2.0
// Runs nftables commands on a netlink socket of its own. A table made here with `flags owner` dies with this
// process, `kill -9` included: the kernel removes it when that socket is closed. nft_rules.h and
// closed_rules.h define the rules.
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

  // Runs commands in the syntax of nft(8), atomically; 0.2 ms for a small one. The error is one line.
  config::TextResult<void> run(const std::string& commands);
  // The same for a command that prints something.
  config::TextResult<std::string> ask(const std::string& command);
  // Removes every owned table that was made here.
  void close();

 private:
  struct Free {
    void operator()(nft_ctx* context) const;
  };
  std::unique_ptr<nft_ctx, Free> context_;
};

}  // namespace longhaul::intercept
