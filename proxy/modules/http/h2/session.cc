// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <new>

namespace longhaul::http::h2 {
namespace {

// As the library wants it; valid as long as the fields. Names in small letters: those stored from HTTP/1 may
// have others.
class Block {
 public:
  explicit Block(const Fields& fields) {
    names_.reserve(fields.all().size());
    for (const Field& field : fields.all()) {
      const std::string& name = names_.emplace_back(lower(field.name));
      const auto flags = field.never_indexed ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
      values_.push_back({data_of(name), data_of(field.value), name.size(), field.value.size(),
                         static_cast<std::uint8_t>(flags)});
    }
  }
  const nghttp2_nv* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }

 private:
  static std::uint8_t* data_of(const std::string& text) {  // the library does not write there
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  }
  std::vector<std::string> names_;
  std::vector<nghttp2_nv> values_;
};

struct FreeCallbacks {
  void operator()(nghttp2_session_callbacks* callbacks) const { nghttp2_session_callbacks_del(callbacks); }
};
struct FreeOption {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};

}  // namespace

struct Callbacks {
  static Session& of(void* self) { return *static_cast<Session*>(self); }

  // What the library lets pass: HEADERS on streams that are over, and PRIORITY for the connection (RFC 9113,
  // section 6.3), whose content it does not read because priorities are not those of RFC 7540.
  static int on_frame_head(nghttp2_session* session, const nghttp2_frame_hd* head, void* self) {
    Session& server = of(self);
    if (server.role_ != Session::Role::server) return 0;
    const auto fails = [&](std::uint32_t error) {
      server.complained_ = true;
      server.terminate(error);
    };
    if (head->type == NGHTTP2_PRIORITY && head->stream_id == 0) fails(errors::protocol);
    if (head->type != NGHTTP2_HEADERS || nghttp2_session_find_stream(session, head->stream_id)) return 0;
    if (const auto fault = server.history_.on_headers(head->stream_id))
      fails(*fault == StreamHistory::Fault::ended ? errors::closed : errors::protocol);
    return 0;
  }

  static int on_begin(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    of(self).block_ = {};
    of(self).block_bytes_ = 0;
    // Nothing is pushed: it was not asked for, and not announced.
    return frame->hd.type == NGHTTP2_PUSH_PROMISE ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
  }

  static int on_field(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name, std::size_t name_size,
                      const std::uint8_t* value, std::size_t value_size, std::uint8_t flags, void* self) {
    Session& session = of(self);
    session.block_bytes_ += name_size + value_size + 32;  // RFC 9113, section 6.5.2
    if (session.block_bytes_ > Session::kMostBlockBytes || session.block_.all().size() == kMostFields) {
      session.complained_ = true;
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    const auto text = [](const std::uint8_t* data, std::size_t size) {
      return std::string(reinterpret_cast<const char*>(data), size);
    };
    session.block_.add(
        {text(name, name_size), text(value, value_size), (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0});
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    SessionUser& user = of(self).user_;
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST &&
        !of(self).block_.has("priority"))
      of(self).long_.add(frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_HEADERS)
      user.on_headers(frame->hd.stream_id, std::exchange(of(self).block_, {}), ends);
    if (frame->hd.type == NGHTTP2_DATA && ends) user.on_end(frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_GOAWAY) user.on_goaway();
    return 0;
  }

  static int on_invalid(nghttp2_session*, const nghttp2_frame*, int, void* self) {
    of(self).complained_ = true;
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, StreamId stream, const std::uint8_t* data,
                     std::size_t size, void* self) {
    of(self).user_.on_data(stream, {reinterpret_cast<const std::byte*>(data), size});
    return 0;
  }

  static int on_closed(nghttp2_session*, StreamId stream, std::uint32_t error, void* self) {
    of(self).turns_.remove(stream);
    of(self).long_.remove(stream);
    if (of(self).reset_ != stream) of(self).history_.on_ended(stream);
    of(self).user_.on_closed(stream, error);
    return 0;
  }

  // A request that cannot be sent has no stream that could close.
  static int on_not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* self) {
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
      of(self).user_.on_closed(frame->hd.stream_id, errors::refused);
    return 0;
  }

  static int on_sent(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type == NGHTTP2_RST_STREAM) of(self).reset_ = frame->hd.stream_id;
    const bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
      of(self).user_.on_end_sent(frame->hd.stream_id);
    return 0;
  }

  static ssize_t read(nghttp2_session* session, StreamId stream, std::uint8_t* out, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source* from, void* self) {
    Source& source = *static_cast<Source*>(from->ptr);
    std::size_t done = 0;
    while (done < size && !source.pieces.empty()) {
      const Slice first = source.pieces.front();
      const std::size_t part = std::min(size - done, first.size());
      std::copy_n(first.bytes().data(), part, reinterpret_cast<std::byte*>(out) + done);
      done += part;
      source.pieces.drop_until(source.pieces.begin_offset() + part);
    }
    const bool is_end = source.pieces.empty() && source.ended;
    if (done == 0 && !is_end) return NGHTTP2_ERR_DEFERRED;
    if (is_end) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (is_end && source.trailers) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const Block block(*source.trailers);
      if (nghttp2_submit_trailer(session, stream, block.data(), block.size()) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    if (done > 0) of(self).turns_.on_sent(stream, done, source.pieces.empty());
    if (done > 0) of(self).long_.on_sent(stream, done);
    if (done > 0) of(self).user_.on_sent(stream, done);
    return static_cast<ssize_t>(done);
  }

  static nghttp2_data_provider provider(Source* source) {
    nghttp2_data_provider result{};
    result.source.ptr = source;
    result.read_callback = read;
    return result;
  }
};

Session::Session(Role role, SessionUser& user) : user_(user), role_(role) {
  nghttp2_session_callbacks* made = nullptr;
  nghttp2_option* chosen = nullptr;
  if (nghttp2_session_callbacks_new(&made) != 0) throw std::bad_alloc();
  const std::unique_ptr<nghttp2_session_callbacks, FreeCallbacks> callbacks(made);
  if (nghttp2_option_new(&chosen) != 0) throw std::bad_alloc();
  const std::unique_ptr<nghttp2_option, FreeOption> option(chosen);
  nghttp2_session_callbacks_set_on_begin_frame_callback(made, Callbacks::on_frame_head);
  nghttp2_session_callbacks_set_on_begin_headers_callback(made, Callbacks::on_begin);
  nghttp2_session_callbacks_set_on_header_callback(made, Callbacks::on_field);
  nghttp2_session_callbacks_set_on_frame_recv_callback(made, Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, Callbacks::on_invalid);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(made, Callbacks::on_closed);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(made, Callbacks::on_not_sent);
  nghttp2_session_callbacks_set_on_frame_send_callback(made, Callbacks::on_sent);
  nghttp2_option_set_no_auto_window_update(chosen, 1);
  nghttp2_option_set_no_closed_streams(chosen, 1);
  // Towards a server every block stands for itself, so that a connection can be continued whose beginning
  // another encoder wrote (Streams::take_over). The link finds the repetitions.
  if (role == Role::client) nghttp2_option_set_max_deflate_dynamic_table_size(chosen, 0);
  const auto make = role == Role::server ? nghttp2_session_server_new2 : nghttp2_session_client_new2;
  if (make(&session_, made, this, chosen) != 0) throw std::bad_alloc();
}

Session::~Session() { nghttp2_session_del(session_); }

bool Session::feed(Bytes bytes) {
  const auto taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  // RFC 9113, section 3.4
  if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
    complained_ = true;
    terminate(errors::protocol);
    return true;
  }
  return taken == static_cast<ssize_t>(bytes.size());
}

void Session::drain(Buffer& out, std::size_t enough) {
  while (out.size() < enough) {
    take_turns();
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size <= 0) return;
    append(out, {reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(size)});
  }
}

bool Session::is_over() const {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

void Session::announce(const Settings& settings, std::int32_t connection_window) {
  std::vector<nghttp2_settings_entry> entries;
  for (const auto& [name, value] : settings) entries.push_back({name, value});
  if (nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, entries.data(), entries.size()) != 0)
    complained_ = true;
  if (connection_window > nghttp2_session_get_local_window_size(session_) &&
      nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, connection_window) != 0)
    complained_ = true;
}

bool Session::peer_takes_tunnels() const {
  return nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
}

void Session::add_tunnel(StreamId stream) {
  long_.remove(stream);
  turns_.add(stream);
}

// Outside the library's callbacks: it does not expect another priority of the stream that it is reading.
void Session::take_turns() {
  const auto share = [this](StreamId stream, std::uint32_t urgency) {
    const nghttp2_extpri priority{.urgency = urgency, .inc = 1};
    nghttp2_session_change_extpri_stream_priority(session_, stream, &priority, /*ignore_client_signal=*/1);
  };
  for (const auto& [stream, is_first] : turns_.poll_changes())
    share(stream, is_first ? NGHTTP2_EXTPRI_URGENCY_HIGH : NGHTTP2_EXTPRI_URGENCY_LOW);
  for (const StreamId stream : long_.poll()) share(stream, NGHTTP2_EXTPRI_DEFAULT_URGENCY);
}

void Session::widen(StreamId stream, std::int32_t window_more) {
  const std::int64_t now = stream == 0 ? nghttp2_session_get_local_window_size(session_)
                                       : nghttp2_session_get_stream_local_window_size(session_, stream);
  const std::int64_t wanted = now + window_more;
  if (now < 0 || wanted > 0x7FFFFFFF ||
      nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, stream,
                                            static_cast<std::int32_t>(wanted)) != 0)
    complained_ = true;
}

void Session::grow(StreamId stream, std::int32_t most, std::int32_t most_together) {
  const std::int32_t now = window(stream),
                     together = nghttp2_session_get_effective_local_window_size(session_);
  if (now == 0 || now >= most) return;
  const std::int32_t more = std::min(now, most - now),
                     all = std::max(together, std::min(together + more, most_together));
  if (nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, stream, now + more) != 0 ||
      nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, all) != 0)
    complained_ = true;
}

std::int32_t Session::window(StreamId stream) const {
  return std::max(nghttp2_session_get_stream_effective_local_window_size(session_, stream), 0);
}

void Session::use_next(StreamId stream) {
  if (nghttp2_session_set_next_stream_id(session_, stream) != 0) complained_ = true;
}

std::optional<StreamId> Session::request(const Fields& block, Source* content) {
  if (nghttp2_session_check_request_allowed(session_) == 0) return std::nullopt;
  const Block fields(block);
  const nghttp2_data_provider from = Callbacks::provider(content);
  const StreamId stream = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                                 content ? &from : nullptr, nullptr);
  return stream > 0 ? std::optional(stream) : std::nullopt;
}

void Session::inform(StreamId stream, const Fields& block) {
  const Block fields(block);
  nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream, nullptr, fields.data(), fields.size(), nullptr);
}

void Session::respond(StreamId stream, const Fields& block, Source* content) {
  const Block fields(block);
  const nghttp2_data_provider from = Callbacks::provider(content);
  if (nghttp2_submit_response(session_, stream, fields.data(), fields.size(), content ? &from : nullptr) != 0)
    reset(stream, errors::internal);
}

void Session::resume(StreamId stream) { nghttp2_session_resume_data(session_, stream); }

void Session::reset(StreamId stream, std::uint32_t error) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, error);
}

void Session::consumed(StreamId stream, std::size_t bytes) {
  if (bytes == 0) return;
  stream == 0 ? nghttp2_session_consume_connection(session_, bytes)
              : nghttp2_session_consume(session_, stream, bytes);
}

void Session::say_goodbye(std::uint32_t error) {
  if (std::exchange(said_goodbye_, true)) return;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_), error,
                        nullptr, 0);
}

void Session::terminate(std::uint32_t error) {
  said_goodbye_ = true;
  nghttp2_session_terminate_session(session_, error);
}

}  // namespace longhaul::http::h2
