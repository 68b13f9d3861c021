// SPDX-License-Identifier: Apache-2.0
// What is found in pages and style sheets, and what their references mean.
#include <catch2/catch.hpp>

#include "proxy/modules/http/prefetch/links.h"
#include "proxy/modules/http/prefetch/module_links.h"
#include "proxy/modules/http/prefetch/reference.h"

using namespace longhaul::http;

namespace {

template <class Links>
std::vector<std::string> found_in(std::string_view text) {
  Links whole;
  whole.feed(text);
  const auto found = whole.take();
  Links bytewise;
  for (const char c : text) bytewise.feed({&c, 1});
  CHECK(bytewise.take() == found);
  return found;
}
std::vector<std::string> page(std::string_view text) { return found_in<PageLinks>(text); }
std::vector<std::string> script(std::string_view text) { return found_in<ModuleLinks>(text); }
std::vector<std::string> style(std::string_view text) { return found_in<StyleLinks>(text); }
using Found = std::vector<std::string>;

}  // namespace

TEST_CASE("http links: a page names what a browser loads with it") {
  CHECK(page("<!DOCTYPE html><html><head><link rel=stylesheet href=a.css><script src='b.js'></script></head>"
             "<body><IMG alt=\"x > y\" SRC=\"c.png?a=1&amp;b=2\"/><video poster=d.jpg></video>") ==
        Found{"a.css", "b.js", "c.png?a=1&b=2", "d.jpg"});
  CHECK(page("<link rel='preload' as=image href=a.png><link href=b.js rel=\"modulepreload\"><script type=module src=c.js>") ==
        Found{"a.png", "b.js", "c.js"});
  CHECK(page("<style>@import 'a.css'; p { background: url(b.png) }</style><img src=c.png>") == Found{"a.css", "b.png", "c.png"});
}

TEST_CASE("http links: what a browser does not load, or may not, is not named") {
  for (const char* text :
       {"<a href=/logout>", "<!-- <img src=a.png> -->", "<script>'<img src=a.png>'</script>", "<textarea><img src=a></textarea>",
        "<noscript><img src=a.png></noscript>", "<template><img src=a.png></template>", "<link rel=canonical href=/a>",
        "<link rel='alternate stylesheet' href=a.css>", "<img src=a.png srcset='b.png 2x'>", "<img loading=lazy src=a.png>",
        "<picture><source srcset=b.webp><img src=a.png></picture>", "<script nomodule src=a.js>", "<script type=text/template src=a>",
        "<form action=/delete>", "<iframe src=a.html></iframe>", "<link rel=preload as=fetch href=a.json>", "<img src=a&lt;.png>",
        "<!DOCTYPE html PUBLIC '<img src=a.png'>", "<img data-src=a.png>", "< img src=a.png>", "<link rel=preconnect href=//b>"})
    CHECK(page(text) == Found{});
  CHECK(page("<!-- a --><img src=b><!--><img src=c>") == Found{"b", "c"});
  CHECK(page("<script>if (a</script b></script><img src=c>") == Found{"c"});
  CHECK(page("<img src='" + std::string(3000, 'a') + "'><img src=b>") == Found{"b"});
}

TEST_CASE(
    "http links: a page has one manifest, which is requested with credentials only if the page demands it") {
  const auto manifest = [](std::string_view text) -> std::string {
    PageLinks links;
    links.feed(text);
    CHECK(links.take().empty());
    const auto found = links.take_manifest();
    CHECK_FALSE(links.take_manifest());
    return found ? (found->has_credentials ? "with credentials " : "") + found->reference : "none";
  };
  CHECK(manifest("<link rel=manifest href=a.json><link rel=manifest href=b.json>") == "a.json");
  CHECK(manifest("<link rel='x Manifest' href=a crossorigin=anonymous>") == "a");
  CHECK(manifest("<link crossorigin=Use-Credentials rel=manifest href=a>") == "with credentials a");
  CHECK(manifest("<link rel=manifest><link rel=icon href=a><a rel=manifest href=b>") == "none");
}

TEST_CASE("http links: a hostile page is read once, and has an end") {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "<img src=" + std::to_string(i) + ">";
  CHECK(page(text).size() == kMostLinks);
  CHECK(page(std::string(100'000, '<')).empty());
  CHECK(page("<img " + std::string(100'000, 'a') + "=b src=c>") == Found{"c"});
}

TEST_CASE("http links: a style sheet names what it imports, and pictures") {
  CHECK(style("@import \"a.css\"; @import url( 'b.css' ) print; /* url(no.png) */ a { background: url(c.png) }") ==
        Found{"a.css", "b.css", "c.png"});
  CHECK(style("a { content: 'url(b.png)' } @font-face { src: url(a.woff2), url('a.ttf#x') }") == Found{});
  CHECK(style("a { background: URL(\"a.png\") no-repeat, myurl(b.png) }") == Found{"a.png"});
}

TEST_CASE("http links: a script names what it imports first") {
  CHECK(script("// first\n'use strict'; import a from './a.js';import{b as c,d}from\"/b.js\"\nimport * as e "
               "from\n  '../c.js'\n"
               "import '../d.js' /* and */ export * from './e.js'; export {f} from './f.js'; export * as g "
               "from './g.js';let h;"
               "import './late.js'") ==
        Found{"./a.js", "/b.js", "../c.js", "../d.js", "./e.js", "./f.js", "./g.js"});
  CHECK(script("\xef\xbb\xbfimport def, * as from from 'http://a.corp/a.js';import x from './x.js'") ==
        Found{"http://a.corp/a.js", "./x.js"});
  CHECK(script("import React from 'react'; import './a.js'") ==
        Found{"./a.js"});  // the page's import map says where it is
  CHECK(script("export {a, b}; import './a.js'") == Found{"./a.js"});
  for (const char* text :
       {"import('./a.js')", "import.meta.url", "let a; import './b.js'", "export default './a.js'",
        "export const a = './b.js'", "`import './a.js'`", "/* import './a.js'", "importance './a.js'",
        "import {'a b' as c} from './a.js'", "import a './b.js'", "import './a\\x2e.js'", "import './a\n.js'",
        "import './a.js", "export './a.js'", "from './a.js'", "/a/.test('./b.js')", ""})
    CHECK(script(text) == Found{});
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "import './" + std::to_string(i) + "';";
  CHECK(script(many).size() == kMostLinks);
  CHECK(script("import " + std::string(100'000, 'a') + " from './b.js'").empty());
  CHECK(script("import '/" + std::string(100'000, 'a') + "'").empty());
  CHECK(page("<script type=module>import './a.js'; if (1 < 2) {}</script><script>import "
             "'./b.js'</script><script type=module src=c.js>"
             "import './d.js'</script><img src=e.png>") == Found{"./a.js", "c.js", "e.png"});
  CHECK(page("<script type=module>// a <\nimport './a.js'; /* <*/ import './b<c.js'; /* </s <</scrip */ "
             "import './d.js'</script>") == Found{"./a.js", "./b<c.js", "./d.js"});
  CHECK(script("import 'a?b=c://d'; import 'https://a.corp/b.js'") == Found{"https://a.corp/b.js"});
}

TEST_CASE("http links: references mean what they mean to a browser, or nothing") {
  const Origin origin{.scheme = "http://", .authority = "a.corp:8080"};
  const auto at = [&](std::string_view reference) { return resolve(origin, "/x/y.html?z=/q", reference).value_or("none"); };
  CHECK(at("b.css") == "/x/b.css");
  CHECK(at(" b.css#top ") == "/x/b.css");
  CHECK(at("../b.css") == "/b.css");
  CHECK(at("../../b.css") == "/b.css");
  CHECK(at("./c/./d/../b.css?v=1.0/../2") == "/x/c/b.css?v=1.0/../2");
  CHECK(at("?a") == "/x/y.html?a");
  CHECK(at("/b") == "/b");
  CHECK(at("//A.corp:8080/b") == "/b");
  CHECK(at("HTTP://a.corp:8080/b") == "/b");
  CHECK(at("http://a.corp:8080") == "/");
  CHECK(at("http://a.corp:8080?a") == "/?a");
  CHECK(at("..") == "/");
  for (const char* elsewhere :
       {"http://a.corp/b", "https://a.corp:8080/b", "//b.corp/b", "data:image/png,x", "javascript:alert(1)", "mailto:a@b", "", "#a",
        "a b", "a\\b", "/logout", "/item?action=Delete", "a\"b", "a%2e%2e/b", "\xc3\xa4", "a\nb", "http:b", "http:/b", "//"})
    CHECK(at(elsewhere) == "none");
  CHECK(at(std::string(3000, 'a')) == "none");
}
