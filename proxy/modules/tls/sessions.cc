// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/sessions.h"

namespace longhaul::tls {

Sessions::Map::iterator Sessions::erase(Map::iterator at) {
  order_.erase(at->second.number);
  return kept_.erase(at);
}

void Sessions::put(const Place& place, const std::string& name, std::string id, Session session) {
  const auto [at, is_new] = kept_.try_emplace({place, name, std::move(id)});
  if (!is_new) order_.erase(at->second.number);
  at->second = {.session = std::move(session), .number = ++numbers_};
  order_.emplace(at->second.number, at);
  if (kept_.size() > kMost) erase(order_.begin()->second);
}

std::optional<Sessions::Session> Sessions::take(const Place& place, const std::string& name, std::string id,
                                                modules::TimePoint now) {
  const auto found = kept_.find({place, name, std::move(id)});
  if (found == kept_.end()) return std::nullopt;
  std::optional<Session> session(std::move(found->second.session));
  erase(found);
  if (session->until <= now) session.reset();
  return session;
}

bool Sessions::has(const Place& place) const {
  const auto found = kept_.lower_bound({place, {}, {}});
  return found != kept_.end() && found->first.place == place;
}

bool Sessions::has(const Place& place, const std::string& name) const {
  const auto found = kept_.lower_bound({place, name, {}});
  return found != kept_.end() && found->first.place == place && found->first.name == name;
}

void Sessions::forget(const Place& place, const std::string& name) {
  for (auto at = kept_.lower_bound({place, name, {}});
       at != kept_.end() && at->first.place == place && at->first.name == name;)
    at = erase(at);
}

}  // namespace longhaul::tls
