// SPDX-License-Identifier: Apache-2.0
// Decides what to prefetch on a connection: parses pages as they pass to the client, and prefetched style
// sheets, and keeps the list of embedded objects that the client probably does not have. The halves own the
// connection (far.h, h2/ahead.h).
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proxy/modules/http/place.h"
#include "proxy/modules/http/prefetch/gunzip.h"
#include "proxy/modules/http/prefetch/links.h"
#include "proxy/modules/http/prefetch/manifest_links.h"
#include "proxy/modules/http/prefetch/messages.h"
#include "proxy/modules/http/prefetch/module_links.h"
#include "proxy/modules/http/prefetch/reference.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class Fetching {
 public:
  using TimePoint = link::TimePoint;
  // Limits for one page: objects, bytes of the page that are parsed, references of one style sheet or script,
  // content of the objects.
  static constexpr std::size_t kMostObjects = 128, kMostReadBytes = 1 << 20, kMostOfObject = 16;
  static constexpr std::uint64_t kMostPageBytes = 8 << 20, kLeastPageBytes = 256 << 10;
  static constexpr link::Duration kMostLineTime = std::chrono::seconds(3);  // of the line, for the objects of a page

  // `owner`: the client's peer. `verified_name`: as in Place.
  Fetching(const modules::Ends& ends, std::shared_ptr<Site> site, const std::string& owner, std::string_view verified_name = {});

  void on_surroundings(const modules::Surroundings& told);
  bool is_on() const { return is_on_; }
  // Stops prefetch on this connection for good.
  void give_up() { gave_up_ = true; }

  // A page, style sheet, script or manifest that is being parsed.
  struct Document {
    std::shared_ptr<const RequestHead> asked;  // the request for its objects, with the document's own target
    Origin origin;
    unsigned depth = 0;  // 0: the page itself
    std::optional<Gunzip> gunzip;
    std::variant<PageLinks, StyleLinks, ModuleLinks, ManifestLinks> links;
    bool loads_manifest = false;       // of a page: its browser loads the manifest on each visit
    std::vector<std::string> related;  // learnt targets that are not announced yet
    std::size_t read = 0, found = 0;
    bool is_over = false;  // nothing more will be found
  };
  // For a response to the client. Returns nullopt if it is not parsed.
  std::optional<Document> begins(TimePoint now, const RequestHead& request, const ResponseHead& response);
  // The references found in these bytes, to be announced before the bytes pass.
  std::vector<Announced> read(TimePoint now, Document& document, Bytes content);

  // ---- objects
  struct Next {
    std::uint64_t number = 0;
    RequestHead asked;
    unsigned depth = 0;
    std::shared_ptr<const RequestHead> asked_for_icon;  // of a manifest; still with the page's target
  };
  std::optional<Next> next();
  // For the response to a prefetch, which may refer to more objects.
  std::optional<Document> begins(const Next& object, const ResponseHead& response);
  void fetched(TimePoint now, const Next& object, const ResponseHead& response);
  void count(std::uint64_t bytes) { bytes_left_ -= std::min(bytes_left_, bytes); }
  // Numbers that were announced and will not be fetched.
  std::vector<std::uint64_t> take_dropped() { return std::exchange(dropped_, {}); }
  void drop_all();

 private:
  struct Waiting {
    std::uint64_t number;
    std::shared_ptr<const RequestHead> asked;
    std::string target;
    unsigned depth;
    std::shared_ptr<const RequestHead> asked_for_icon;
  };
  // Requests like `asked`, for targets that the document refers to. `asked_for_icon`: the target is a
  // manifest.
  std::optional<Announced> announce(TimePoint now, Document& document, const std::vector<std::string>& found,
                                    const std::shared_ptr<const RequestHead>& asked,
                                    const std::shared_ptr<const RequestHead>& asked_for_icon = nullptr);
  std::optional<Announced> announce_manifest(TimePoint now, Document& document,
                                             const PageLinks::Manifest& manifest, const std::string& base);
  std::string known_to_client(const std::string& key) const { return client_ + key; }
  std::string known_to_site(const std::string& key) const { return owner_ + key; }
  // The response in the form of a cache. Returns nullopt if its status is not 200, or if it does not answer a
  // GET.
  std::optional<Stored> note(TimePoint now, const RequestHead& request, const ResponseHead& response);
  void learn(TimePoint now, const RequestHead& request, const ResponseHead& response, const Stored& stored);
  Origin origin_of(const RequestHead& request) const;
  // The name of the page in Relations. Returns nullopt if Referer does not name a page of this server.
  std::optional<std::string> referring_page(const RequestHead& request) const;

  std::shared_ptr<Site> site_;
  Place place_;
  std::string client_, owner_;
  bool is_on_ = false, gave_up_ = false;
  std::uint64_t line_bytes_per_second_ = 0;

  std::deque<Waiting> waiting_;
  std::vector<std::uint64_t> dropped_;
  std::uint64_t numbers_ = 0, bytes_left_ = 0;
  std::size_t objects_left_ = 0;
};

}  // namespace longhaul::http
