// SPDX-License-Identifier: Apache-2.0
// The contexts of CREATE and of its response: their list, and those that request a lease or a handle that
// outlives its connection. Without state; results borrow from the input.
#pragma once
#include <optional>
#include <string_view>

#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

// 2.2.13.2: names of create contexts. Most have four letters; some have sixteen bytes.
namespace create_context {
inline constexpr std::string_view ea = "ExtA";
inline constexpr std::string_view security = "SecD";
inline constexpr std::string_view durable = "DHnQ";
inline constexpr std::string_view durable_reconnect = "DHnC";
inline constexpr std::string_view allocation = "AlSi";
inline constexpr std::string_view maximal_access = "MxAc";
inline constexpr std::string_view timewarp = "TWrp";
inline constexpr std::string_view file_id = "QFid";
inline constexpr std::string_view lease = "RqLs";
inline constexpr std::string_view durable_v2 = "DH2Q";
inline constexpr std::string_view durable_reconnect_v2 = "DH2C";
inline constexpr std::string_view apple = "AAPL";
}  // namespace create_context

struct CreateContext {
  Bytes name;
  Bytes data;
};
using CreateContexts = boost::container::small_vector<CreateContext, 6>;
// Returns nullopt if an offset or a length points outside the list.
std::optional<CreateContexts> parse_contexts(Bytes list);
// The data of the first context of that name.
std::optional<Bytes> find_context(const CreateContexts& contexts, std::string_view name);

// 2.2.13.2.8 and 2.2.13.2.10; responses have the same layouts (2.2.14.2.10, 2.2.14.2.11)
struct Lease {
  LeaseKey key{};
  std::uint32_t state = 0;  // lease_state
  std::uint32_t flags = 0;  // lease_flags
  std::uint8_t version = 1;
  LeaseKey parent_key{};    // version 2, with lease_flags::parent_key_set
  std::uint16_t epoch = 0;  // version 2
};

// Returns nullopt for other sizes: servers refuse or ignore them.
std::optional<Lease> parse_lease(const CreateContexts& contexts);

// 2.2.13.2.3, .4, .11 and .12: requests for a handle that outlives its connection.
enum class Durable : std::uint8_t { none, request, reconnect, request_v2, reconnect_v2 };
inline constexpr std::uint32_t kPersistent = 2;  // 2.2.13.2.11, 2.2.13.2.12, 2.2.14.2.12
struct DurableHandle {
  Durable durable = Durable::none;
  bool persistent = false;  // requested, or reconnected to
  FileId reconnect_to;      // for a reconnect
  Guid create_guid{};       // for version 2
};
// For a request; a reconnect overrides a request next to it. The server checks the lengths: here it only
// matters that such handles pass unchanged.
DurableHandle parse_durable(const CreateContexts& contexts);

// 2.2.13.2.6, 2.2.13.2.7: a context that is one number.
std::optional<std::uint64_t> parse_number(const CreateContexts& contexts, std::string_view name);

}  // namespace longhaul::smb::smb2
