// SPDX-License-Identifier: Apache-2.0
// A client and a server of HTTP/2 that a test plays, with sessions of their own. Their bytes go wherever the
// test brings them.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/modules/http/h2/session.h"
#include "tests/proxy/modules/kit/twins.h"

namespace longhaul::http::h2 {

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

class Peer : public SessionUser {
 public:
  explicit Peer(Session::Role role) : session(role, *this) {}
  struct Message {
    Fields head;                        // of the last block but the trailers
    std::vector<std::string> informed;  // the status of each 1xx
    Fields trailers;
    std::string content;
    bool ended = false, closed = false;
    std::uint32_t error = 0;
    Source source;  // what this side says
  };

  // False: it cannot go on.
  bool take(std::string& arrived) {
    const std::string bytes = std::exchange(arrived, {});
    return bytes.empty() || session.feed(bytes_of(bytes));
  }
  std::string out() {
    Buffer bytes;
    session.drain(bytes, ~std::size_t{0});
    return text_of(bytes);
  }

  void on_headers(StreamId stream, Fields block, bool ends) override {
    Message& message = messages[stream];
    const std::string status = block.value(":status");
    if (status.starts_with('1'))
      message.informed.push_back(status);
    else if (message.head.all().empty())
      message.head = std::move(block);
    else
      message.trailers = std::move(block);
    message.ended |= ends;
    if (on_message) on_message(stream, message);
  }
  void on_data(StreamId stream, Bytes bytes) override {
    messages[stream].content += text_of(bytes);
    if (reads) session.consumed(stream, bytes.size());
  }
  void on_end(StreamId stream) override {
    messages[stream].ended = true;
    if (on_message) on_message(stream, messages[stream]);
  }
  void on_closed(StreamId stream, std::uint32_t error) override {
    messages[stream].closed = true;
    messages[stream].error = error;
  }
  void on_goaway() override { goaway = true; }
  void on_sent(StreamId, std::size_t) override {}
  void on_end_sent(StreamId) override {}

  std::map<StreamId, Message> messages;
  std::function<void(StreamId, Message&)> on_message;  // its head has come, and later its end
  bool goaway = false, reads = true;
  Session session;
};

inline Fields request(const std::string& path, std::vector<Field> more = {},
                      const std::string& method = "GET", const std::string& scheme = "http") {
  Fields block;
  block.add({":method", method});
  block.add({":scheme", scheme});
  block.add({":authority", "x"});
  block.add({":path", path});
  for (Field& field : more) block.add(std::move(field));
  return block;
}

inline Fields response(const std::string& status, std::vector<Field> more = {}) {
  Fields block;
  block.add({":status", status});
  for (Field& field : more) block.add(std::move(field));
  return block;
}

class Client : public Peer {
 public:
  Client() : Peer(Session::Role::client) {}
  StreamId asks(const std::string& path, std::vector<Field> more = {}, const std::string& scheme = "http") {
    const auto stream = session.request(request(path, std::move(more), "GET", scheme), nullptr);
    return stream.value();
  }
  StreamId sends(const std::string& method, const std::string& path, const std::string& content,
                 std::optional<Fields> trailers = {}) {
    auto source = std::make_unique<Source>();
    source->add(kit::slice_of(content));
    source->ended = true;
    source->trailers = std::move(trailers);
    const auto stream = session.request(request(path, {}, method), source.get());
    sources_.push_back(std::move(source));
    return stream.value();
  }

 private:
  std::vector<std::unique_ptr<Source>> sources_;
};

// Serves /fresh… for an hour, everything else only after validation; what comes with a body is a change of
// the version, and its content is the answer's.
class Web : public Peer {
 public:
  Web() : Peer(Session::Role::server) {
    on_message = [this](StreamId stream, Message& message) {
      message.ended ? answer(stream, message) : void();
    };
  }
  int asked = 0, not_modified = 0;
  std::string version = "1";

  std::string content_of(const std::string& path) const {
    const std::string text = path + " version " + version;
    return path.starts_with("/large") ? std::string(300'000, 'x') + text : text;
  }

 private:
  void answer(StreamId stream, Message& message) {
    ++asked;
    const std::string path = message.head.value(":path");
    if (path == "/silent") return;
    std::vector<Field> fields{{"etag", '"' + version + '"'}};
    if (path.starts_with("/fresh") || path.starts_with("/large"))
      fields.push_back({"cache-control", "max-age=3600"});
    if (message.head.value("if-none-match") == '"' + version + '"') {
      ++not_modified;
      return session.respond(stream, response("304", fields), nullptr);
    }
    std::string content = content_of(path);
    if (!message.content.empty()) version += "1", content = message.content;
    if (path == "/hints") session.inform(stream, response("103", {{"link", "</a.css>"}}));
    fields.push_back({"content-length", std::to_string(content.size())});
    if (message.head.value(":method") == "HEAD")
      return session.respond(stream, response("200", fields), nullptr);
    message.source.add(kit::slice_of(content));
    message.source.ended = true;
    if (path == "/trailers") message.source.trailers.emplace().add({"checksum", "7"});
    session.respond(stream, response("200", fields), &message.source);
  }
};

}  // namespace longhaul::http::h2
