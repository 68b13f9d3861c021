// SPDX-License-Identifier: Apache-2.0
// What is learnt from Referer: of two clients, for a day, within bounds; and the visit of a third client.
#include <catch2/catch.hpp>

#include "proxy/modules/http/prefetch/relations.h"
#include "tests/proxy/modules/http/prefetch_visit.h"

namespace longhaul::http::prefetch_visit {
namespace {

using Targets = std::vector<std::string>;
constexpr link::TimePoint kStart{std::chrono::hours(1)};

}  // namespace

TEST_CASE("http relations: two clients show one, and for a day") {
  http::Relations relations;
  relations.learn(kStart, "page", "/a.js", "one");
  relations.learn(kStart, "page", "/a.js", "one");
  CHECK(relations.of(kStart, "page").empty());
  relations.learn(kStart, "page", "/b.js", "two");
  relations.learn(kStart + std::chrono::hours(1), "page", "/b.js", "one");
  relations.learn(kStart + std::chrono::hours(2), "page", "/a.js", "two");
  CHECK(relations.of(kStart + std::chrono::hours(2), "page") == Targets{"/a.js", "/b.js"});
  CHECK(relations.of(kStart, "other page").empty());
  CHECK(relations.of(kStart + std::chrono::hours(26), "page") == Targets{"/a.js"});
  CHECK(relations.of(kStart + std::chrono::hours(27), "page").empty());
  // What was forgotten by time is learnt anew, by two.
  relations.learn(kStart + std::chrono::hours(30), "page", "/a.js", "two");
  CHECK(relations.of(kStart + std::chrono::hours(30), "page").empty());
  relations.learn(kStart + std::chrono::hours(30), "page", "/a.js", "one");
  CHECK(relations.of(kStart + std::chrono::hours(30), "page") == Targets{"/a.js"});
}

TEST_CASE("http relations: what the server does not have is forgotten, and all at once") {
  http::Relations relations;
  for (const char* target : {"/a", "/b"})
    for (const char* client : {"one", "two"}) relations.learn(kStart, "page", target, client);
  const std::size_t both = relations.bytes();
  relations.forget("page", "/a");
  relations.forget("page", "/never seen");
  relations.forget("never seen", "/b");
  CHECK(relations.of(kStart, "page") == Targets{"/b"});
  CHECK(relations.bytes() == both / 2);
  relations.clear();
  CHECK(relations.of(kStart, "page").empty());
  CHECK(relations.bytes() == 0);
}

TEST_CASE("http relations: a page keeps the latest ones, and all pages a number of bytes") {
  http::Relations relations;
  for (int i = 0; i < 100; ++i)
    for (const char* client : {"one", "two"})
      relations.learn(kStart + std::chrono::seconds(i), "page", "/" + std::to_string(i), client);
  const Targets kept = relations.of(kStart + std::chrono::seconds(100), "page");
  CHECK(kept.size() == http::Relations::kMostOfPage);
  CHECK(kept.back() == "/99");
  CHECK(kept.front() == "/68");

  for (int page = 0; page < 5'000; ++page)
    for (int i = 0; i < 4; ++i)
      relations.learn(kStart, std::to_string(page), '/' + std::string(2'000, static_cast<char>('a' + i)),
                      "one");
  CHECK(relations.bytes() <= http::Relations::kMostBytes);
  CHECK(relations.of(kStart, "page").empty());
  for (const char* client : {"two", "three"}) relations.learn(kStart, "4999", "/new", client);
  CHECK(relations.of(kStart, "4999") == Targets{"/new"});
}

namespace {

struct Visit {
  Visit(const std::shared_ptr<modules::Instance>& shared, int client)
      : twins(http::kWithPrefetch, static_cast<unsigned>(client), shared, ends_of(client)),
        site(twins),
        browser(twins) {}
  Twins twins;
  Server site;
  Browser browser;
};

// Whether a third client is answered from a prefetch after two have fetched the target because of the page,
// which does not name it.
bool is_learnt(const std::string& target, const std::string& fields, std::vector<int> clients = {1, 2},
               const std::string& browser_fields = "") {
  const auto shared = instance();
  const auto visit = [&](int client) {
    Visit made(shared, client);
    made.site.pages["/page"] = "<p>see the script</p>";
    made.site.extra[target] = fields;
    REQUIRE(made.browser.get(asks_page("/page")) == made.site.pages["/page"]);
    REQUIRE(made.browser.get(asks(target, browser_fields)) == Server::content_of(target));
    CHECK(made.site.count(target) == 1);
    return made.browser.is_prefetched();
  };
  for (const int client : clients) CHECK_FALSE(visit(client));
  return visit(3);
}

}  // namespace

TEST_CASE("http relations: a third client is answered with what scripts of the page loaded for two others") {
  const std::string script = "Content-Type: text/javascript\r\n",
                    kept = "Cache-Control: private\r\nETag: \"1\"\r\n";
  CHECK(is_learnt("/late.js", script + kept));
  CHECK(is_learnt("/late.png?v=3", "Content-Type: image/png\r\n" + kept));
  CHECK_FALSE(is_learnt("/late.js", script + kept, {1}));
  CHECK_FALSE(is_learnt("/late.js", script + kept, {1, 1}));
  // Not a file of the server, not part of a page, or what may have an effect.
  CHECK_FALSE(is_learnt("/late.js", script));
  CHECK_FALSE(is_learnt("/late.js", script + kept + "Set-Cookie: a=1\r\n"));
  CHECK_FALSE(is_learnt("/late.js", script + "Cache-Control: no-store\r\nETag: \"1\"\r\n"));
  CHECK_FALSE(is_learnt("/late.json", "Content-Type: application/json\r\n" + kept));
  CHECK_FALSE(is_learnt("/late.js?delete=1", script + kept));
  // Two Referers are not one.
  CHECK_FALSE(is_learnt("/late.js", script + kept, {1, 2}, "Referer: http://x/other\r\n"));
}

TEST_CASE("http relations: a target that has gone is requested once more and then no longer") {
  const auto shared = instance();
  const auto asked_ahead = [&](int client, bool is_there) {
    Visit made(shared, client);
    made.site.pages["/page"] = "<p>see the script</p>";
    made.site.extra["/late.js"] =
        "Content-Type: text/javascript\r\nCache-Control: private\r\nETag: \"1\"\r\n";
    if (!is_there) made.site.statuses["/late.js"] = "404 Not Found";
    made.browser.get(asks_page("/page"));
    const std::size_t ahead = made.site.count("/late.js");
    if (is_there) made.browser.get(asks("/late.js"));
    return ahead == 1;
  };
  CHECK_FALSE(asked_ahead(1, true));
  CHECK_FALSE(asked_ahead(2, true));
  CHECK(asked_ahead(3, false));
  CHECK_FALSE(asked_ahead(4, false));
}

}  // namespace longhaul::http::prefetch_visit
