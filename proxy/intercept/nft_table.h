// SPDX-License-Identifier: Apache-2.0
// Runs nftables commands on a netlink socket of its own. A table created here with `flags owner` disappears
// with this process, even after `kill -9`: the kernel removes it when the socket is closed. nft_rules.h and
// closed_rules.h define the rules.
#pragma once
#include <memory>
#include <string>

#include "proxy/config/text_error.h"

struct nft_ctx;

namespace longhaul::intercept {

class NftTable {
 public:
  NftTable();  // opens the socket at the first command
  ~NftTable();

  // Runs commands in the syntax of nft(8), atomically; takes 0.2 ms for a small command. The error is one
  // line.
  config::TextResult<void> run(const std::string& commands);
  // The same for a command that prints something.
  config::TextResult<std::string> ask(const std::string& command);
  // Removes every owned table that was created here.
  void close();

 private:
  struct Free {
    void operator()(nft_ctx* context) const;
  };
  std::unique_ptr<nft_ctx, Free> context_;
};

}  // namespace longhaul::intercept
