// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/store_views.h"

#include <boost/json/array.hpp>

namespace longhaul::control {
namespace {

namespace json = boost::json;

json::value view(cache::ClearedKey key) {
  switch (key) {
    case cache::ClearedKey::none:
      break;
    case cache::ClearedKey::pending:
      return "pending";
    case cache::ClearedKey::destroyed:
      return "destroyed";
    case cache::ClearedKey::kept:
      return "kept";
  }
  return nullptr;
}

}  // namespace

json::value view(const std::optional<cache::StoreCounters>& disk) {
  if (!disk) return nullptr;
  return {{"ready", disk->ready},
          {"bytes", disk->disk_bytes},
          {"limit_bytes", disk->cap_bytes},
          {"segments", disk->segments},
          {"memory_bytes", disk->memory_bytes},
          {"queued_bytes", disk->queued_bytes},
          {"put", disk->put},
          {"put_bytes", disk->put_bytes},
          {"refused", disk->refused},
          {"refused_bytes", disk->refused_bytes},
          {"failed", disk->failed},
          {"wrong_digest", disk->wrong_digest},
          {"evicted", disk->made_room},
          {"damaged", disk->damaged},
          {"lost", disk->lost},
          {"loads", disk->loads},
          {"load_bytes", disk->load_bytes},
          {"loads_failed", disk->loads_failed},
          {"lookups", disk->lookups},
          {"hits", disk->hits}};
}

json::value view(const std::optional<cache::ObjectCounters>& objects) {
  if (!objects) return nullptr;
  return {{"ready", objects->ready},
          {"bytes", objects->disk_bytes},
          {"limit_bytes", objects->cap_bytes},
          {"objects", objects->objects},
          {"memory_bytes", objects->memory_bytes},
          {"queued_bytes", objects->queued_bytes},
          {"put", objects->put},
          {"put_bytes", objects->put_bytes},
          {"refused", objects->refused},
          {"failed", objects->failed},
          {"evicted", objects->evicted},
          {"damaged", objects->damaged},
          {"reads", objects->reads},
          {"read_bytes", objects->read_bytes},
          {"reads_failed", objects->reads_failed},
          {"answers", objects->answers},
          {"reads_late", objects->reads_late},
          {"reads_skipped", objects->reads_skipped}};
}

json::object view(const Cleared& cleared) {
  json::array peers;
  for (const auto& peer : cleared.peers)
    peers.push_back(
        json::object{{"peer", peer.name},
                     {"disk_bytes", peer.disk_bytes ? json::value(*peer.disk_bytes) : json::value()}});
  return {{"memory_bytes", cleared.memory_bytes}, {"disk_bytes", cleared.disk_bytes},
          {"object_bytes", cleared.object_bytes}, {"object_key", view(cleared.object_key)},
          {"disk_key", view(cleared.disk_key)},   {"peers", std::move(peers)}};
}

}  // namespace longhaul::control
