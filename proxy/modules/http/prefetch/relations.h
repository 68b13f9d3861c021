// SPDX-License-Identifier: Apache-2.0
// Which objects browsers fetch because of a page or script although no parsed document names them: learnt
// from the Referer of their requests. Bounded; a forgotten relation costs a missed prefetch.
#pragma once
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proxy/link/types.h"

namespace longhaul::http {

class Relations {
 public:
  using TimePoint = link::TimePoint;
  static constexpr std::size_t kMostPages = 2048, kMostOfPage = 32, kMostBytes = 4 << 20;
  // How long a relation holds after the last browser showed it.
  static constexpr link::Duration kLifetime = std::chrono::hours(24);

  // A browser of `client` has fetched `target`, and named `page` in its Referer. `page` and `client` may be
  // any text that identifies them.
  void learn(TimePoint now, std::string_view page, std::string_view target, std::string_view client);
  // The targets that at least two clients have fetched; the longest known first. A target that only one
  // client may know is not requested on behalf of another.
  std::vector<std::string> of(TimePoint now, std::string_view page) const;
  // The server did not have the target.
  void forget(std::string_view page, std::string_view target);
  void clear();

  std::size_t bytes() const { return bytes_; }

 private:
  struct Object {
    std::string target;
    TimePoint seen;
    std::size_t first_client = 0;
    bool is_of_several = false;
  };
  static std::size_t bytes_of(const Object& object) { return sizeof object + object.target.size(); }
  void erase_oldest_page();

  std::unordered_map<std::size_t, std::deque<Object>> pages_;  // by the hash of the page's name
  std::deque<std::size_t> order_;                              // pages, the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace longhaul::http
