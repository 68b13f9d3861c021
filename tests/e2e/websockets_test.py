# SPDX-License-Identifier: Apache-2.0
"""WebSockets inside HTTP/2 (RFC 8441) between hypercorn and programs we did not write: h2 with wsproto, and Chromium."""

import collections
import hashlib
import json
import random
import socket
import ssl
import unittest

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import tls
import wsproto.connection
import wsproto.events
from browser import PROGRAM, Browser
from lab import SERVER, SERVER6, until
from pair import PairTest

NAME = "intranet.corp"
PATIENCE = 60.0
DOWNLOAD = 10_000_000
# Echoes; says on request which version of HTTP carries it; notes what became of each path.
APPLICATION = """
import pathlib

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        return await send({"type": "lifespan.shutdown.complete"})
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        pieces = [bytes([n % 251]) * 50_000 for n in range(DOWNLOAD // 50_000)] if scope["path"] == "/download" else [b"<title>page</title>"]
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        return await send({"type": "http.response.body", "body": b"", "more_body": False})
    await receive()
    await send({"type": "websocket.accept", "subprotocol": next(iter(scope["subprotocols"]), None)})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            with open(pathlib.Path(__file__).parent / "ended", "a") as file:
                file.write(scope["path"] + "\\n")
            return
        if message.get("text") == "version":
            await send({"type": "websocket.send", "text": scope["http_version"]})
        elif message.get("text") == "close":
            await send({"type": "websocket.send", "text": "last"})
            return await send({"type": "websocket.close", "code": 4001})
        else:
            await send({key: message[key] for key in ("text", "bytes") if message.get(key) is not None} | {"type": "websocket.send"})
""".replace("DOWNLOAD", str(DOWNLOAD))


class Server:
    """hypercorn: 443 with TLS, 8080 in the clear."""

    def __init__(self, lab, certificate):
        self.folder = lab.scratch / "application"
        self.folder.mkdir()
        (self.folder / "application.py").write_text(APPLICATION)
        self.process = lab.start("server", "env", f"PYTHONPATH={self.folder}", "PYTHONDONTWRITEBYTECODE=1", "/usr/bin/python3", "-m", "hypercorn",
                                 "--bind", "[::]:443", "--insecure-bind", "[::]:8080", "--certfile", certificate[0], "--keyfile", certificate[1],
                                 "--keep-alive", 600, "application:app", name="hypercorn")
        until(lambda: self.process.log().count("Running on") == 2, what="hypercorn is up")

    def ended(self):
        file = self.folder / "ended"
        return file.read_text().split() if file.exists() else []


class Connection:
    """HTTP/2 of a client that the test controls, and the WebSockets on it."""

    def __init__(self, lab, address=SERVER, port=443, authority=None):
        with lab.inside("client"):
            self.socket = socket.create_connection((address, port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if port == 443:
            context = ssl.create_default_context(cafile=authority.certificate)
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname=NAME)
        self.scheme = "https" if port == 443 else "http"
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.data = collections.defaultdict(bytearray)
        self.heads, self.ended, self.resets = {}, set(), {}
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def step(self):
        arrived = self.socket.recv(65536)
        if not arrived:
            raise AssertionError("the connection has ended")
        for event in self.h2.receive_data(arrived):
            stream = getattr(event, "stream_id", None)
            if isinstance(event, h2.events.ResponseReceived):
                self.heads[stream] = dict(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                self.data[stream] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, h2.events.StreamEnded):
                self.ended.add(stream)
            elif isinstance(event, h2.events.StreamReset):
                self.resets[stream] = event.error_code
        self.flush()

    def until(self, condition):
        while not condition():
            self.step()

    def offers(self):
        return self.h2.remote_settings.get(h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL, 0) == 1

    def get(self, path):
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [(":method", "GET"), (":scheme", self.scheme), (":authority", NAME), (":path", path)], end_stream=True)
        self.flush()
        return stream

    def send(self, stream, data, end=False):
        while data:
            self.until(lambda: self.h2.local_flow_control_window(stream) > 0)
            size = min(len(data), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            self.h2.send_data(stream, data[:size])
            data = data[size:]
            self.flush()
        if end:
            self.h2.end_stream(stream)
            self.flush()


class WebSocket:
    def __init__(self, connection, path="/echo"):
        self.connection = connection
        self.stream = connection.h2.get_next_available_stream_id()
        connection.h2.send_headers(self.stream, [
            (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", connection.scheme), (":authority", NAME), (":path", path),
            ("sec-websocket-version", "13"), ("sec-websocket-protocol", "echoes")])
        connection.flush()
        connection.until(lambda: self.stream in connection.heads or self.stream in connection.resets)
        self.status = connection.heads.get(self.stream, {}).get(":status")
        self.frames = wsproto.connection.Connection(wsproto.connection.ConnectionType.CLIENT)
        self.taken = 0

    def send(self, event):
        self.connection.send(self.stream, self.frames.send(event))

    def receive(self):
        """The next whole message, or what closes the WebSocket."""
        parts = []
        while True:
            for event in self.frames.events():
                if isinstance(event, wsproto.events.Message):
                    parts.append(event.data)
                    if not event.message_finished:
                        continue
                    return type(parts[0])().join(parts)
                return event
            self.connection.until(lambda: len(self.connection.data[self.stream]) > self.taken or self.stream in self.connection.ended)
            arrived = bytes(self.connection.data[self.stream][self.taken:])
            if not arrived:
                raise AssertionError("the stream has ended")
            self.taken += len(arrived)
            self.frames.receive_data(arrived)

    def echoed(self, data):
        self.send((wsproto.events.TextMessage if isinstance(data, str) else wsproto.events.BytesMessage)(data=data))
        return self.receive()


class WebSockets(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        pair = cls.authority.issue(NAME)
        cls.server = Server(cls.lab, pair)
        cls.datacenter.hosts = {NAME: SERVER}
        cls.datacenter.settings["tls_server"] = [{"addresses": [SERVER, SERVER6], "names": [NAME], "certificate": str(pair[0]),
                                                  "key": str(pair[1]), "ca": str(cls.authority.certificate)}]

    def connection(self, **where):
        """One on which both sides have spoken, so that the offer has arrived."""
        made = self.enterContext(Connection(self.lab, authority=self.authority, **where))
        stream = made.get("/page")
        made.until(lambda: stream in made.ended)
        return made

    def test_messages_of_all_sizes_come_back_as_they_were_sent_decrypted_and_in_the_clear(self):
        for where in ({"port": 443}, {"port": 8080}, {"address": SERVER6}):
            with self.subTest(**where):
                connection = self.connection(**where)
                self.assertTrue(connection.offers())
                web_socket = WebSocket(connection)
                self.assertEqual((web_socket.status, connection.heads[web_socket.stream].get("sec-websocket-protocol")), ("200", "echoes"))
                self.assertEqual(web_socket.echoed("version"), "2")
                bytes_of = random.Random(1)
                for size in (1, 2, 125, 126, 1000, 65_535, 65_536, 1_000_000, 3):
                    data = bytes_of.randbytes(size)
                    self.assertEqual(hashlib.sha256(web_socket.echoed(data)).digest(), hashlib.sha256(data).digest())
                # The near side's own limit: hypercorn would say 100.
                self.assertEqual(connection.h2.remote_settings[h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS], 128)
                # The end of the WebSocket, and of its stream: the server's message and its Close frame before it.
                web_socket.send(wsproto.events.TextMessage(data="close"))
                self.assertEqual(web_socket.receive(), "last")
                closed = web_socket.receive()
                self.assertEqual((type(closed), closed.code), (wsproto.events.CloseConnection, 4001))
                # The test adds nothing: hypercorn 0.13 cannot take what arrives after its own end of a stream.
                connection.until(lambda: web_socket.stream in connection.ended)
                self.assertNotIn(web_socket.stream, connection.resets)

    def test_messages_come_back_while_a_download_runs_on_the_same_connection(self):
        connection = self.connection()
        web_socket = WebSocket(connection)
        download = connection.get("/download")
        during = 0
        while download not in connection.ended:
            self.assertEqual(web_socket.echoed(f"message {during}"), f"message {during}")
            during += 1
        self.assertGreater(during, 2)
        expected = b"".join(bytes([n % 251]) * 50_000 for n in range(DOWNLOAD // 50_000))
        self.assertEqual(hashlib.sha256(connection.data[download]).digest(), hashlib.sha256(expected).digest())

    def test_a_websocket_that_is_reset_ends_at_the_server_and_others_go_on(self):
        connection = self.connection()
        web_sockets = [WebSocket(connection, f"/many/{number}") for number in range(20)]
        for number, each in enumerate(web_sockets):
            self.assertEqual(each.echoed(f"{number}" * 100), f"{number}" * 100)
        connection.h2.reset_stream(web_sockets[7].stream, h2.errors.ErrorCodes.CANCEL)
        connection.flush()
        until(lambda: "/many/7" in self.server.ended(), what="the server knows")
        for number, each in enumerate(web_sockets):
            if number != 7:
                self.assertEqual(each.echoed("again"), "again")
        self.assertEqual(self.server.ended().count("/many/8"), 0)
        connection.socket.close()
        until(lambda: sum(path.startswith("/many/") for path in self.server.ended()) == 20, what="the server knows of all")

    @unittest.skipUnless(PROGRAM, "chromium is not installed")
    def test_chromium_opens_websockets_inside_the_connection_of_its_page(self):
        options = (f"--host-resolver-rules=MAP {NAME} {SERVER}", "--ignore-certificate-errors")
        with Browser(self.lab, "client", self.lab.scratch / "profile-websockets", options=options) as browser:
            browser.open(f"https://{NAME}/page")
            browser.until("document.title == 'page'")
            script = """new Promise((done, failed) => {
              const socket = new WebSocket("wss://NAME/browser", "echoes"), sent = [], got = [];
              socket.binaryType = "arraybuffer";
              socket.onerror = () => failed("error");
              socket.onopen = () => { socket.send("version");
                for (const size of [1, 1000, 300000]) { const data = crypto.getRandomValues(new Uint8Array(Math.min(size, 65536)));
                  const all = new Uint8Array(size).map((_, at) => data[at % data.length]); sent.push(all.join()); socket.send(all); } };
              socket.onmessage = ({data}) => { got.push(typeof data == "string" ? data : new Uint8Array(data).join());
                if (got.length == 4) { socket.onclose = () => done(JSON.stringify({version: got[0], same: got.slice(1).join(";") == sent.join(";"),
                  protocol: socket.protocol})); socket.close(1000); } };
            })""".replace("NAME", NAME)
            said = json.loads(browser.value(script))  # not the code: directly from hypercorn 0.13 it is 1006, too
        self.assertEqual(said, {"version": "2", "same": True, "protocol": "echoes"})


class WebSocketsPrefetch(WebSockets):
    """The same with prefetch, when the far side also terminates HTTP/2."""

    both = {"features": {"http.prefetch": True}}


class NotOffered(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        pair = cls.authority.issue(NAME)
        cls.nginx = tls.Nginx(cls.lab, [(NAME, pair, "")])
        cls.nginx.put("page", 1000)
        cls.datacenter.settings["tls_server"] = [{"addresses": [SERVER], "names": [NAME], "certificate": str(pair[0]), "key": str(pair[1]),
                                                  "ca": str(cls.authority.certificate)}]

    def test_a_server_without_websockets_offers_none_through_the_pair(self):
        connection = self.enterContext(Connection(self.lab, authority=self.authority))
        for _ in range(2):
            stream = connection.get("/page")
            connection.until(lambda: stream in connection.ended)
        self.assertFalse(connection.offers())
        web_socket = WebSocket(connection)
        self.assertIsNone(web_socket.status)
        self.assertEqual(connection.resets[web_socket.stream], h2.errors.ErrorCodes.PROTOCOL_ERROR)


if __name__ == "__main__":
    unittest.main()
