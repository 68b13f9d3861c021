// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/nft_table.h"

#include <nftables/libnftables.h>

#include <string_view>

#include "proxy/process/privileges.h"

namespace longhaul::intercept {

void NftTable::Free::operator()(nft_ctx* context) const { nft_ctx_free(context); }

NftTable::NftTable() = default;
NftTable::~NftTable() = default;

config::TextResult<void> NftTable::run(const std::string& commands) {
  auto done = ask(commands);
  if (!done) return done.error();
  return {};
}

config::TextResult<std::string> NftTable::ask(const std::string& commands) {
  // Otherwise the library would print a line to standard error.
  if (!process::has_net_admin()) return config::TextError{"packet rules need root or CAP_NET_ADMIN"};
  if (!context_) {
    context_.reset(nft_ctx_new(NFT_CTX_DEFAULT));
    if (!context_) return config::TextError{"cannot initialise libnftables"};
    nft_ctx_buffer_output(context_.get());
    nft_ctx_buffer_error(context_.get());
  }
  const int failed = nft_run_cmd_from_buffer(context_.get(), commands.c_str());
  // Reading a buffer empties it.
  const std::string error = nft_ctx_get_error_buffer(context_.get());
  std::string output = nft_ctx_get_output_buffer(context_.get());
  if (failed == 0) return {boost::system::in_place_value, std::move(output)};
  // The first line has the error; the following lines show its position in the generated text.
  constexpr std::string_view kWhat = "Error: ";
  std::string first = error.substr(0, error.find('\n'));
  if (const auto at = first.find(kWhat); at != std::string::npos) first.erase(0, at + kWhat.size());
  return config::TextError{first.empty() ? "nftables rejected the rules without an error message" : first};
}

void NftTable::close() { context_.reset(); }

}  // namespace longhaul::intercept
