// SPDX-License-Identifier: Apache-2.0
// What is fetched for the manifest of a page, and with which request.
#include <catch2/catch.hpp>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/prefetch/fetching.h"
#include "tests/proxy/modules/http/with_prefetch.h"
#include "tests/proxy/modules/kit/twins.h"

namespace longhaul::http {
namespace {

const config::FeatureTable kTable{kFeaturesWithPrefetch};
constexpr Fetching::TimePoint kNow{std::chrono::hours(1)};
constexpr std::string_view kChromium =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36";
constexpr std::string_view kManifest =
    R"({"name": "n", "start_url": "/", "display": "standalone", "icons": [{"src": "icons/a.png", "sizes": "192x192"}]})";

struct Visitor {
  explicit Visitor(std::string_view verified_name, std::string_view browser = kChromium)
      : site(std::make_shared<Site>(1 << 20)),
        fetching(modules::Ends{.server_port = 443}, site, "branch", verified_name),
        user_agent(browser) {
    site->wall = [] { return 1'800'000'000; };
    fetching.on_surroundings({.features = {.modules = config::ModuleFeatures::standard(kTable)}});
  }
  static ResponseHead response(std::string type) {
    ResponseHead head{.minor = 1, .status = 200, .phrase = "OK", .fields = {}};
    head.fields.add({"Content-Type", std::move(type)});
    return head;
  }
  std::vector<Announced> page(std::string_view text) {
    RequestHead asked{.method = "GET", .target = "/shop/page", .minor = 1, .fields = {}};
    for (Field field : {Field{"Host", "x"}, Field{"Accept", "text/html"}, Field{"User-Agent", user_agent},
                        Field{"Cookie", "me=1"}, Field{"Authorization", "Basic eDp5"},
                        Field{"Sec-Fetch-Dest", destination}})
      asked.fields.add(std::move(field));
    auto document = fetching.begins(kNow, asked, response("text/html"));
    REQUIRE(document);
    return fetching.read(kNow, *document, std::as_bytes(std::span(text)));
  }
  // The next object arrives. Gives its target, whether with credentials, and what is found in it.
  std::string arrives(std::string type, std::string_view content) {
    const auto next = fetching.next();
    if (!next) return "nothing";
    const bool has_both = next->asked.fields.has("cookie") && next->asked.fields.has("authorization");
    const bool has_none = !next->asked.fields.has("cookie") && !next->asked.fields.has("authorization");
    std::string text = next->asked.target + (has_both ? " with credentials" : has_none ? "" : " with some");
    if (auto document = fetching.begins(*next, response(std::move(type))))
      for (const Announced& each : fetching.read(kNow, *document, std::as_bytes(std::span(content))))
        text += " announces " + text_of(each.targets);
    return text;
  }
  static std::string text_of(const Slice& slice) {
    return {reinterpret_cast<const char*>(slice.bytes().data()), slice.size()};
  }
  std::shared_ptr<Site> site;
  Fetching fetching;
  std::string user_agent, destination = "document";
};

}  // namespace

TEST_CASE("http fetching: Chromium's manifest is fetched without credentials, and then its icon with them") {
  Visitor visitor("x");
  const auto said = visitor.page("<link rel=manifest href=app.json><img src=/a.png>");
  REQUIRE(said.size() == 2);
  CHECK(Visitor::text_of(said[0].targets) == "/a.png\n");
  CHECK(Visitor::text_of(said[0].asked).find("Cookie: me=1\r\n") != std::string::npos);
  CHECK(Visitor::text_of(said[1].targets) == "/shop/app.json\n");
  CHECK(Visitor::text_of(said[1].asked).find("Cookie") == std::string::npos);
  CHECK(Visitor::text_of(said[1].asked).find("Authorization") == std::string::npos);
  CHECK(visitor.arrives("image/png", "") == "/a.png with credentials");
  CHECK(visitor.arrives("application/manifest+json", kManifest) ==
        "/shop/app.json announces /shop/icons/a.png\n");
  CHECK(visitor.arrives("image/png", "") == "/shop/icons/a.png with credentials");
  CHECK(visitor.arrives("", "") == "nothing");
}

TEST_CASE("http fetching: a page may demand credentials for its manifest") {
  Visitor visitor("x");
  CHECK(visitor.page("<link rel=manifest crossorigin=use-credentials href=/app.json>").size() == 1);
  CHECK(visitor.arrives("application/json", kManifest) ==
        "/app.json with credentials announces /icons/a.png\n");
}

TEST_CASE("http fetching: without TLS the icon is not fetched, and for other browsers not the manifest") {
  Visitor plain(""), other("x", "Mozilla/5.0 Gecko/20100101 Firefox/150.0");
  CHECK(plain.page("<link rel=manifest href=/app.json>").size() == 1);
  CHECK(plain.arrives("application/manifest+json", kManifest) == "/app.json");
  CHECK(plain.arrives("", "") == "nothing");
  CHECK(other.page("<link rel=manifest href=/app.json>").empty());
  CHECK(other.arrives("", "") == "nothing");
}

TEST_CASE("http fetching: the manifest of a page inside another is not fetched") {
  Visitor visitor("x");
  visitor.destination = "iframe";
  CHECK(visitor.page("<link rel=manifest href=/app.json>").empty());
}

// Otherwise it would be requested with the page's cookies.
TEST_CASE("http fetching: a manifest is not learnt as a related object") {
  Visitor visitor("x");
  for (unsigned client : {1, 2}) {
    modules::Ends ends{.server_port = 443};
    ends.client[15] = std::byte(client);
    Fetching other(ends, visitor.site, "branch", "x");
    other.on_surroundings({.features = {.modules = config::ModuleFeatures::standard(kTable)}});
    for (const auto& [target, type] :
         {std::pair("/app.json", "application/manifest+json"), std::pair("/a.js", "text/javascript")}) {
      RequestHead asked{.method = "GET", .target = target, .minor = 1, .fields = {}};
      for (Field field : {Field{"Host", "x"}, Field{"Referer", "https://x/shop/page"}})
        asked.fields.add(std::move(field));
      ResponseHead response = Visitor::response(type);
      response.fields.add({"ETag", "\"1\""});
      response.fields.add({"Cache-Control", "private"});
      CHECK_FALSE(other.begins(kNow, asked, response));
    }
  }
  const auto said = visitor.page("<link rel=manifest href=/app.json>");
  REQUIRE(said.size() == 2);
  CHECK(Visitor::text_of(said[0].targets) == "/a.js\n");
  CHECK(Visitor::text_of(said[1].targets) == "/app.json\n");
}

}  // namespace longhaul::http
