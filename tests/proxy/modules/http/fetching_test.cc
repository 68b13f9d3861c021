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
    R"({"name": "n", "display": "standalone", "icons": [{"src": "icons/a.png", "sizes": "192x192"}]})";

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
                        Field{"Cookie", "me=1"}})
      asked.fields.add(std::move(field));
    auto document = fetching.begins(kNow, asked, response("text/html"));
    REQUIRE(document);
    return fetching.read(kNow, *document, std::as_bytes(std::span(text)));
  }
  // The next object arrives. Gives its target, its cookies, and what is found in it.
  std::string arrives(std::string type, std::string_view content) {
    const auto next = fetching.next();
    if (!next) return "nothing";
    std::string text = next->asked.target + " [" + next->asked.fields.value("cookie") + "]";
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
  std::string user_agent;
};

}  // namespace

TEST_CASE("http fetching: Chromium's manifest is fetched without cookies, and then its icon with them") {
  Visitor visitor("x");
  const auto said = visitor.page("<link rel=manifest href=app.json><img src=/a.png>");
  REQUIRE(said.size() == 2);
  CHECK(Visitor::text_of(said[0].targets) == "/a.png\n");
  CHECK(Visitor::text_of(said[0].asked).find("Cookie: me=1\r\n") != std::string::npos);
  CHECK(Visitor::text_of(said[1].targets) == "/shop/app.json\n");
  CHECK(Visitor::text_of(said[1].asked).find("Cookie") == std::string::npos);
  CHECK(visitor.arrives("image/png", "") == "/a.png [me=1]");
  CHECK(visitor.arrives("application/manifest+json", kManifest) ==
        "/shop/app.json [] announces /shop/icons/a.png\n");
  CHECK(visitor.arrives("image/png", "") == "/shop/icons/a.png [me=1]");
  CHECK(visitor.arrives("", "") == "nothing");
}

TEST_CASE("http fetching: a page may demand cookies for its manifest") {
  Visitor visitor("x");
  CHECK(visitor.page("<link rel=manifest crossorigin=use-credentials href=/app.json>").size() == 1);
  CHECK(visitor.arrives("application/json", kManifest) == "/app.json [me=1] announces /icons/a.png\n");
}

TEST_CASE("http fetching: without TLS the icon is not fetched, and for other browsers not the manifest") {
  Visitor plain(""), other("x", "Mozilla/5.0 Gecko/20100101 Firefox/150.0");
  CHECK(plain.page("<link rel=manifest href=/app.json>").size() == 1);
  CHECK(plain.arrives("application/manifest+json", kManifest) == "/app.json []");
  CHECK(plain.arrives("", "") == "nothing");
  CHECK(other.page("<link rel=manifest href=/app.json>").empty());
  CHECK(other.arrives("", "") == "nothing");
}

}  // namespace longhaul::http
