// SPDX-License-Identifier: Apache-2.0
// Mistakes in a configuration, each reported in one sentence.
#include "proxy/config/read.h"

#include <catch2/catch.hpp>

#include "proxy/config/plain_ascii.h"
#include "tests/proxy/config/texts.h"

#include "proxy/modules/modules.h"

using namespace longhaul::config;
using namespace longhaul::config::test;

TEST_CASE("every mistake is one sentence with file and line") {
  const auto [text, wanted] = GENERATE_COPY(table<std::string, std::string>({
      // The text itself.
      {"site = \"a\"\nlink = [", "dir/a.toml:2: this is not valid TOML: "},
      {"site = \"a\"\nsite = \"b\"\n", "dir/a.toml:2: this is not valid TOML: "},
      {"site = \"\xff\"", "dir/a.toml:1: this character is not UTF-8, or "},
      {"# caf\u00e9\nsite = \u201ca\u201d\n",
       "dir/a.toml:2: this character is not UTF-8, or neither in double quotes nor in a comment; use plain quotes: "
       "\"...\"."},
      {"site = \"a\"\n[.a]\n", "dir/a.toml:2: this is not valid TOML: "},
      // Keys.
      {"\nsite = \"a\"\nsit = 1\n", "dir/a.toml:3: the file has no key \"sit\". Did you mean site?"},
      {"site = \"a\"\n[lnik]\n", "dir/a.toml:2: the file has no key \"lnik\". Did you mean link?"},
      {after_head("[link]\nlisten = \"[::]:1\"\ntotal-rate = \"1gbit\"\n"),
       "dir/a.toml:7: [link] has no key \"total-rate\". Did you mean total_rate?"},
      {after_head("[link]\nzzz = 1\naaa = 2\n"),
       "dir/a.toml:6: [link] has no key \"zzz\". Known names: listen, allow, total_rate, "
       "congestion_control and key_log."},
      {after_head("[[peer]]\nname = \"b\"\nfingerprnt = \"x\"\n"),
       "dir/a.toml:7: [[peer]] has no key \"fingerprnt\". Did you mean fingerprint?"},
      {"site = \"a\"\n[[rule]]\nto_port = [1]\n",
       "dir/a.toml:3: [[rule]] has no key \"to_port\". Did you mean to_ports?"},
      {"site = \"a\"\n[features]\ncompresion = true\n",
       "dir/a.toml:3: [features] has no key \"compresion\". Did you mean compression?"},
      {"site = \"a\"\n[[rule]]\nfeatures = { smbb = true }\n",
       "dir/a.toml:3: [[rule]] features has no key \"smbb\". Did you mean smb?"},
      {"site = \"a\"\n[[rule]]\nto_ports = [80]\nfeatures = { transport = \"tcp\" }\n",
       "dir/a.toml:4: [[rule]] features transport = \"tcp\" has no effect in a [[rule]], because all flows to a peer share "
       "one carrier; set it in [features], or use \"auto\" or \"off\" here."},
      {"site = \"a\"\n[features]\nsmb.read_ahaed = true\n",
       "dir/a.toml:3: [features] has no key \"smb.read_ahaed\". Did you mean smb.read_ahead?"},
      {"site = \"a\"\n[features]\nsmb.read_ahead = 1\n",
       "dir/a.toml:3: [features] smb.read_ahead cannot be \"1\"; it must be true or false."},
      {"site = \"a\"\n[features]\ncompression.x = 1\n",
       "dir/a.toml:3: [features] has no key \"compression.x\". Did you mean compression?"},
      // Brackets.
      {after_head("[peer]\nname = \"b\"\n"),
       "dir/a.toml:5: there can be several of this table; write [[peer]] with double brackets, not [peer]."},
      {after_head("[[link]]\nlisten = \"[::]:1\"\n"),
       "dir/a.toml:5: there can be only one [link]; write it with single brackets."},
      {after_head("[[smb_server]]\naddresses = [\"10.10.2.2\"]\nkeytab = \"k\"\n"),
       "dir/a.toml:5: [[smb_server]] addresses has 10.10.2.2/32, to which this site does not connect for its peers "
       "([link] allow does not contain it). This table belongs to the far side, at the server: remove it here, so that "
       "its secrets stay there."},
      {after_head("[link]\nallow = [\"10.10.2.0/24\"]\n[[smb_server]]\naddresses = [\"10.10.2.2\"]\n"),
       "dir/a.toml:7: [[smb_server]] needs keytab or ntlm_hashes."},
      {after_head("[link]\nallow = [\"10.10.2.0/24\"]\n[[smb_server]]\nkeytab = \"k\"\n"),
       "dir/a.toml:7: [[smb_server]] needs the key addresses, "},
      {after_head("[link]\nallow = [\"10.10.2.0/24\"]\n[[smb_server]]\naddresses = [\"10.10.2.2\"]\nkeytab = \"k\"\n"
                  "sign = \"off\"\n"),
       "dir/a.toml:10: [[smb_server]] sign cannot be \"off\"; "},
      {after_head("[link]\nallow = [\"10.10.2.0/24\"]\n[[smb_server]]\naddresses = [\"10.10.2.2\"]\nkeytab = \"k\"\n"
                  "[[smb_server]]\naddresses = [\"10.10.2.2\"]\nkeytab = \"k\"\n"),
       "dir/a.toml:10: [[smb_server]] addresses has 10.10.2.2/32, which another such table already has; "},
      {after_head("[link]\nallow = [\"10.10.2.0/24\"]\n[[tls_server]]\naddresses = [\"10.10.2.2\"]\nkey = \"k\"\n"
                  "names = [\"*\"]\n"),
       "dir/a.toml:10: [[tls_server]] names must not have \"*\": name the servers, or a domain as \"*.corp\"."},
      {after_head("[link]\nallow = [\"10.10.2.0/24\"]\n[[tls_server]]\naddresses = [\"10.10.2.2\"]\nkey = \"k\"\n"
                  "names = [\"10.10.2.2\"]\n"),
       "dir/a.toml:10: [[tls_server]] names has \"10.10.2.2\", which is no host name."},
      {after_head("[link]\nallow = [\"10.10.2.0/24\"]\n[[tls_server]]\naddresses = [\"10.10.2.2\"]\nkey = \"k\"\n"),
       "dir/a.toml:7: [[tls_server]] needs the key names, "},
      {after_head("[link]\nallow = [\"10.10.2.0/24\"]\n[[tls_server]]\naddresses = [\"10.10.2.2\"]\nkey = \"k\"\n"
                  "names = [\"a.corp\"]\nmode = \"bump\"\n"),
       "dir/a.toml:11: [[tls_server]] mode cannot be \"bump\"; it must be \"server\" or \"mint\"."},
      {"site = \"a\"\nlog = 1\n", "dir/a.toml:2: log must be a table, such as [log]; it is a number."},
      {"site = \"a\"\nrule = [1]\n", "dir/a.toml:2: rule must be a table, such as [[rule]]; it is a number."},
      {after_head("[link]\nkey_log = \"/tmp/keys\"\n"),
       "dir/a.toml:6: [link] key_log = \"/tmp/keys\" must be the name of a file without a directory: it is put into "
       "state_dir, which only the daemon's user can read."},
      {after_head("[log]\nsyslog = \"tcp:host:514\"\n"),
       "dir/a.toml:6: [log] syslog = \"tcp:host:514\" must be true, \"unix:/dev/log\" or \"udp:HOST:514\"."},
      {after_head("[log]\nsyslog = \"unix:log\"\n"),
       "dir/a.toml:6: [log] syslog = \"unix:log\" has no absolute path of at most 107 bytes after unix:."},
      {after_head("[log]\nsyslog = \"udp:host\"\n"),
       "dir/a.toml:6: [log] syslog = \"udp:host\" has no port; write ADDRESS:PORT."},
      // Keys that something else in the file makes pointless.
      {after_head("[dictionary]\ndisk = 0\ndirectory = \"d\"\n"), "dir/a.toml:5: [dictionary] directory has no effect with disk = 0."},
      {after_head("[dictionary]\ndisk = 0\nshare = [\"all\"]\n"), "dir/a.toml:5: [dictionary] share has no effect with disk = 0."},
      {after_head("[process]\nsandbox = false\nunknown_calls = \"kill\"\n"),
       "dir/a.toml:5: [process] unknown_calls has no effect with sandbox = false."},
      // Exports.
      {after_head("[export]\nipfix = \"collector\"\n"),
       "dir/a.toml:6: [export] ipfix = \"collector\" has no port; write ADDRESS:PORT."},
      {after_head("[export]\nipfix_active_timeout = 0\n"), "dir/a.toml:6: [export] ipfix_active_timeout "},
      {after_head("[export]\nipfix_enterprise = 5\n"),
       "dir/a.toml:5: [export] ipfix_enterprise has no effect without ipfix, the address of the collector."},
      {after_head("[export]\notlp_interval = 5\n"),
       "dir/a.toml:5: [export] otlp_interval has no effect without otlp, the address of the collector."},
      {after_head("[export]\notlp = \"collector:4318\"\n"),
       "dir/a.toml:6: [export] otlp = \"collector:4318\" does not begin with http:// or https://."},
      {after_head("[export]\notlp = \"http://collector:4318\"\notlp_ca = \"ca.pem\"\n"),
       "dir/a.toml:7: [export] otlp_ca has no effect without otlp = \"https://…\"."},
      {after_head("[export]\notlp = \"http://collector\"\n"),
       "dir/a.toml:6: [export] otlp = \"http://collector\" has no port; write ADDRESS:PORT."},
      {after_head("[export]\notlp = \"http://collector:4318/a?b\"\n"),
       "dir/a.toml:6: [export] otlp = \"http://collector:4318/a?b\" has a path that is too long, or has characters other "
       "than letters, digits and /-._~."},
      // The site.
      {"[log]\n", "dir/a.toml:1: the file needs the key site, for example site = \"branch\"."},
      {"site = 7\n", "dir/a.toml:1: site must be a string in quotes, such as \"branch\"; it is a number."},
      {"site = \"\"\n", "dir/a.toml:1: site must not be empty; write for example \"branch\"."},
      {"site = \"a b\"\n",
       "dir/a.toml:1: site must be 1 to 63 letters, digits, dots, dashes or underscores."},
      // The identity.
      {"site = \"a\"\n[link]\nlisten = \"[::]:7600\"\n",
       "dir/a.toml: the file needs an [identity] with certificate and private_key; `longhaul keygen a` creates "
       "both."},
      {"site = \"a\"\n[identity]\ncertificate = \"a.crt\"\n",
       "dir/a.toml:2: [identity] needs the key private_key, for example private_key = \"a.key\"."},
      // The link.
      {after_head("[link]\nlisten = 7600\n"),
       "dir/a.toml:6: [link] listen must be a string in quotes, such as \"0.0.0.0:7600\"; it is a number."},
      {after_head("[link]\nlisten = \"0.0.0.0:0\"\n"),
       "dir/a.toml:6: [link] listen = \"0.0.0.0:0\" has no port from 1 to 65535 after the last colon."},
      {after_head("[link]\nlisten = \"::1:7600\"\n"),
       "dir/a.toml:6: [link] listen = \"::1:7600\" has no port, or an IPv6 address without brackets; write "
       "[ADDRESS]:PORT."},
      {after_head("[link]\nlisten = \"localhost:7600\"\n"),
       "dir/a.toml:6: [link] listen = \"localhost:7600\" has no IPv4 or IPv6 address before its port."},
      {after_head("[link]\nallow = \"10.0.0.0/8\"\n"),
       "dir/a.toml:6: [link] allow must be a list, such as [\"10.10.2.0/24\"]; it is text."},
      {after_head("[link]\nallow = [\n\"10.0.0.0/8\",\n10]\n"),
       "dir/a.toml:8: [link] allow must be a list of strings, such as [\"10.10.2.0/24\"]; one of them is a "
       "number."},
      {after_head("[link]\nallow = [\n\"10.0.0.0/8\",\n\"10.1.2.3/16\"]\n"),
       "dir/a.toml:8: [link] allow has \"10.1.2.3/16\", which has bits after its prefix. Did you mean "
       "\"10.1.0.0/16\"?"},
      {after_head("[link]\nallow = [\"all\"]\n"),
       "dir/a.toml:6: [link] allow has \"all\", which is not a network; write for example \"10.10.2.0/24\" or "
       "\"fd00:2::/64\"."},
      {after_head("[link]\nallow = [\"10.0.0.1\", \"10.0.0.1/32\"]\n"),
       "dir/a.toml:6: [link] allow names \"10.0.0.1/32\" twice."},
      {after_head("[link]\ntotal_rate = \"100Mbps\"\n"),
       "dir/a.toml:6: [link] total_rate cannot be \"100Mbps\"; it must be a number with the unit bit, kbit, "
       "mbit or gbit (per second), such as \"51.84mbit\", from 8kbit to 1000gbit."},
      {after_head("[link]\ncongestion_control = \"BBR v3\"\n"),
       "dir/a.toml:6: [link] congestion_control cannot be \"BBR v3\"; it must be a name that the kernel knows, such as "
       "\"bbr\" or "
       "\"cubic\"."},
      // Peers.
      {after_head("[[peer]]\n" + kFingerprint),
       "dir/a.toml:5: [[peer]] needs the key name, for example name = \"datacenter\"."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\n"),
       "dir/a.toml:5: [[peer]] needs the key fingerprint, for example fingerprint = \"sha256:…\"."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nfingerprint = \"sha256:…\"\n"),
       "dir/a.toml:8: [[peer]] fingerprint must be \"sha256:\" and 64 hexadecimal digits; copy the line that "
       "`longhaul "
       "keygen` printed on the peer."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nfingerprint = \"sha256:AB12\"\n"),
       "dir/a.toml:8: [[peer]] fingerprint must be \"sha256:\" and 64 hexadecimal digits, not 4; copy the line that "
       "`longhaul keygen` printed on the peer."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nfingerprint = []\n"),
       "dir/a.toml:8: [[peer]] fingerprint must not be empty; write for example [\"sha256:…\"]."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nfingerprint = [\n\"sha256:" + kHex + "\",\n\"sha256:" +
                  kHex + "\"]\n"),
       "dir/a.toml:10: [[peer]] fingerprint names the same key twice."},
      {after_head("[[peer]]\nname = \"b\"\n" + kFingerprint),
       "dir/a.toml:5: [[peer]] \"b\" has no address to connect to, and [link] has no listen for it to connect to: "
       "set one of the two."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b\"\n" + kFingerprint),
       "dir/a.toml:7: [[peer]] address = \"b\" has no port; write ADDRESS:PORT."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nrate = 5\n" + kFingerprint),
       "dir/a.toml:8: [[peer]] rate must be a string in quotes, such as \"51.84mbit\"; it is a number."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nrate = \"1kbit\"\n" + kFingerprint),
       "dir/a.toml:8: [[peer]] rate cannot be \"1kbit\"; "},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\n" + kFingerprint +
                  "[[peer]]\nname = \"b\"\naddress = \"c:1\"\nfingerprint = \"sha256:" +
                  std::string(64, 'b') + "\"\n"),
       "dir/a.toml:9: [[peer]] name = \"b\" is already the name of another peer."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\n" + kFingerprint +
                  "[[peer]]\nname = \"c\"\naddress = \"c:1\"\n" + kFingerprint),
       "dir/a.toml:12: [[peer]] fingerprint is already used for the peer \"b\"; each site needs its own key."},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\n" + kFingerprint +
                  "[[peer]]\nname = \"c\"\naddress = \"b:1\"\nfingerprint = \"sha256:" +
                  std::string(64, 'b') + "\"\n"),
       "dir/a.toml:9: [[peer]] address = \"b:1\" is already the address of the peer \"b\"."},
      {after_head(
           "[[peer]]\nname = \"b\"\naddress = \"b:1\"\nnetworks = [\"10.0.0.0/8\"]\n" + kFingerprint +
           "[[peer]]\nname = \"c\"\naddress = \"c:1\"\nnetworks = [\"10.0.0.0/8\"]\nfingerprint = \"sha256:" +
           std::string(64, 'b') + "\"\n"),
       "dir/a.toml:10: [[peer]] networks has 10.0.0.0/8, which the peer \"b\" already has; "},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nnames = [\"*.Corp\"]\n" + kFingerprint +
                  "[[peer]]\nname = \"c\"\naddress = \"c:1\"\nnames = [\"*.corp\"]\nfingerprint = \"sha256:" +
                  std::string(64, 'b') + "\"\n"),
       "dir/a.toml:10: [[peer]] names has \"*.corp\", which the peer \"b\" already has; "},
      {after_head("[[peer]]\nname = \"b\"\naddress = \"b:1\"\nnames = [\"*corp\"]\n" + kFingerprint),
       "dir/a.toml:8: [[peer]] names has \"*corp\", which is not a host name; write for example "},
      // Limits.
      {"site = \"a\"\n[limits]\nflows = 10\nflows_per_source = 11\n",
       "dir/a.toml:2: [limits] flows_per_source = 11 is more than flows, which is 10: one client could use them "
       "all."},
      // Interception.
      {"site = \"a\"\n[intercept]\nmode = \"tproxi\"\n",
       "dir/a.toml:3: [intercept] mode cannot be \"tproxi\"; it must be \"tproxy\" or \"off\"."},
      {"site = \"a\"\n[intercept]\nmode = \"tproxy\"\n",
       "dir/a.toml:2: [intercept] mode = \"tproxy\" needs interfaces, for example interfaces = [\"lan0\"]."},
      {"site = \"a\"\n[intercept]\ninterfaces = [\"lan/0\"]\n",
       "dir/a.toml:3: [intercept] interfaces contains an invalid interface name."},
      {"site = \"a\"\n[intercept]\ninterfaces = [\"lan0\", \"lan0\"]\n",
       "dir/a.toml:3: [intercept] interfaces names \"lan0\" twice."},
      {"site = \"a\"\n[intercept]\nport = 0\n",
       "dir/a.toml:3: [intercept] port cannot be 0; it must be from 1 to 65535."},
      {"site = \"a\"\n[intercept]\nport = \"7650\"\n",
       "dir/a.toml:3: [intercept] port must be a whole number from 1 to 65535; it is text."},
      {"site = \"a\"\n[intercept]\nsource = \"server\"\n",
       "dir/a.toml:3: [intercept] source cannot be \"server\"; it must be \"auto\", \"client\" or \"proxy\"."},
      {"site = \"a\"\n[intercept]\nfail = true\n",
       "dir/a.toml:3: [intercept] fail must be a string in quotes, such as \"open\"; it is true or false."},
      // Listeners.
      {"site = \"a\"\n[[forward]]\nto = \"b:1\"\n",
       "dir/a.toml:2: [[forward]] needs the key listen, for example listen = \"127.0.0.1:8445\"."},
      {"site = \"a\"\n[[forward]]\nlisten = \"127.0.0.1:1\"\n",
       "dir/a.toml:2: [[forward]] needs the key to, for example to = \"10.10.2.2:445\"."},
      {"site = \"a\"\n[[forward]]\nlisten = \"127.0.0.1:1\"\nto = \"0.0.0.0:2\"\n",
       "dir/a.toml:4: [[forward]] to must name one server, not 0.0.0.0."},
      {"site = \"a\"\n[[forward]]\nlisten = \"127.0.0.1:1\"\nto = \"127.0.0.1:1\"\n",
       "dir/a.toml:4: [[forward]] to is the same as listen: the daemon would connect to itself."},
      {"site = \"a\"\n[[forward]]\nlisten = \"127.0.0.1:1\"\nto = \"a b:1\"\n",
       "dir/a.toml:4: [[forward]] to = \"a b:1\" has neither an address nor a name before its port."},
      {"site = \"a\"\n[[forward]]\nlisten = \"127.0.0.1:1\"\nto = \"b:1\"\n[socks]\nlisten = \"0.0.0.0:1\"\n",
       "dir/a.toml:6: [socks] listen takes 0.0.0.0:1, which [[forward]] listen in line 3 already uses as "
       "127.0.0.1:1."},
      {after_head(
           "[link]\nlisten = \"[::]:7650\"\n[intercept]\nmode = \"tproxy\"\ninterfaces = [\"lan0\"]\n"),
       "dir/a.toml:7: [intercept] port takes [::]:7650, which [link] listen in line 6 already uses as "
       "[::]:7650."},
      {"site = \"a\"\n[socks]\nlisten = \"127.0.0.1:7601\"\n",
       "dir/a.toml:3: [socks] listen takes 127.0.0.1:7601, which the default of [control] listen already "
       "uses."},
      {"site = \"a\"\n[control]\nlisten = \"0.0.0.0:7601\"\n",
       "dir/a.toml:3: [control] listen = \"0.0.0.0:7601\" must be a loopback address, such as 127.0.0.1: "
       "flows and counters are not public. tls_listen is for other machines."},
      {"site = \"a\"\n[control]\ntls_key = \"k\"\n", "dir/a.toml:2: [control] tls_key has no effect without tls_listen."},
      {"site = \"a\"\n[control]\ntls_listen = \"10.10.1.1:7602\"\ntls_key = \"k\"\n",
       "dir/a.toml:2: [control] needs the key tls_certificate, "},
      {"site = \"a\"\n[control]\ntls_listen = \"127.0.0.1:7601\"\ntls_certificate = \"c\"\ntls_key = \"k\"\n",
       "dir/a.toml:3: [control] tls_listen takes 127.0.0.1:7601, which the default of [control] listen already uses."},
      // Features.
      {"site = \"a\"\n[features]\ncompression = \"maybe\"\n",
       "dir/a.toml:3: [features] compression cannot be \"maybe\"; it must be true or false."},
      {"site = \"a\"\n[features]\nsmb = 1\n",
       "dir/a.toml:3: [features] smb cannot be \"1\"; it must be true or false."},
      {"site = \"a\"\n[features]\nfec = 2.5\n",
       "dir/a.toml:3: [features] fec must be true, false, a number or a string; it is a fraction."},
      {"site = \"a\"\n[features]\ntransport = \"quic\"\n",
       "dir/a.toml:3: [features] transport cannot be \"quic\"; it must be auto, udp, tcp or off."},
      {"site = \"a\"\n[features]\npreset = \"X\"\n",
       "dir/a.toml:3: [features] preset cannot be \"X\"; it must be B, T, A, F or A+F."},
      {"site = \"a\"\n[features]\nnfs = true\n",
       "dir/a.toml:3: [features] has no key \"nfs\". Known names: preset, transport, window, fast_connect, "
       "compression, dedup_memory, dedup_disk, fec, paths, smb, smb.read_ahead, smb.write_behind, "
       "smb.write_behind_cached, smb.metadata, tls, tls.connect_ahead, http, http.prefetch and http.connect_ahead. There is no module of that name in this program, which has: smb, tls, http."},
      // Modules.
      {"site = \"a\"\n[smb]\nports = 445\n",
       "dir/a.toml:3: [smb] ports must be a list, such as [445, 139]; it is a number."},
      {"site = \"a\"\n[smb]\nany_port = \"yes\"\n",
       "dir/a.toml:3: [smb] any_port must be true or false without quotes; it is text."},
      // Rules.
      {"site = \"a\"\n[[rule]]\nto_ports = [0]\n",
       "dir/a.toml:3: [[rule]] to_ports cannot have port 0; ports are 1 to 65535."},
      {"site = \"a\"\n[[rule]]\nto_ports = [1,\n\"x\"]\n",
       "dir/a.toml:4: [[rule]] to_ports must be a list of port numbers, such as [445, 139]; one of them is "
       "text."},
      {"site = \"a\"\n[[rule]]\nfeatures = { fec = \"0:1\" }\n",
       "dir/a.toml:3: [[rule]] features fec cannot be \"0:1\"; it must be off, adaptive, or K:M "},
      {"site = \"a\"\n[[rule]]\nfail = \"ajar\"\n",
       "dir/a.toml:3: [[rule]] fail cannot be \"ajar\"; it must be \"open\" or \"closed\"."},
      // The dictionary.
      {"site = \"a\"\n[dictionary]\nmemory = \"1MiB\"\n",
       "dir/a.toml:3: [dictionary] memory cannot be \"1MiB\"; it must be 0 (none) or a size from \"16MiB\" to "
       "\"8GiB\"."},
      {"site = \"a\"\n[dictionary]\ndisk = -1\n",
       "dir/a.toml:3: [dictionary] disk cannot be \"-1\"; it must be 0 (none) or a size from \"64MiB\" to "
       "\"16TiB\"."},
      {"site = \"a\"\n[dictionary]\ndirectory = \"\"\n",
       "dir/a.toml:3: [dictionary] directory must not be empty; write for example \"dictionary\"."},
      {"site = \"a\"\n[dictionary]\nshare = [\"the labs\"]\n",
       "dir/a.toml:3: [dictionary] share = \"the labs\" must be 1 to 63 letters, digits, dots, dashes or "
       "underscores."},
      {"site = \"a\"\n[dictionary]\nshare = [\"a\", \"a\"]\n",
       "dir/a.toml:3: [dictionary] share names \"a\" twice."},
      // Limits and log.
      {"site = \"a\"\n[limits]\nflows = 0\n",
       "dir/a.toml:3: [limits] flows cannot be 0; it must be from 1 to 1000000."},
      {"site = \"a\"\n[limits]\nflows = -1\n",
       "dir/a.toml:3: [limits] flows cannot be -1; it must be from 1 to 1000000."},
      {"site = \"a\"\n[limits]\nhandshakes = 2.0\n",
       "dir/a.toml:3: [limits] handshakes must be a whole number from 1 to 10000; it is a fraction."},
      {"site = \"a\"\n[limits]\nmemory = \"512MB\"\n",
       "dir/a.toml:3: [limits] memory cannot be \"512MB\"; it must be a size from \"16MiB\" to \"1TiB\", such as "
       "\"2GiB\". Did you mean \"512MiB\"?"},
      {"site = \"a\"\n[dictionary]\ndisk = \"1g\"\n",
       "dir/a.toml:3: [dictionary] disk cannot be \"1g\"; it must be 0 (none) or a size from \"64MiB\" to \"16TiB\". "
       "Did you mean \"1GiB\"?"},
      {"site = \"a\"\n[dictionary]\ndisk = \"much\"\n",
       "dir/a.toml:3: [dictionary] disk cannot be \"much\"; it must be 0 (none) or a size from \"64MiB\" to \"16TiB\"."},
      {"site = \"a\"\n[log]\nlevel = \"verbose\"\n",
       "dir/a.toml:3: [log] level cannot be \"verbose\"; it must be \"info\", \"error\", \"warn\", \"debug\" or "
       "\"trace\"."},
      {"site = \"a\"\n[log]\njson = \"yes\"\n",
       "dir/a.toml:3: [log] json must be true or false without quotes; it is text."},
  }));
  CAPTURE(text);
  const std::string got = sentence(text);
  // Where the end is open (a parser's own words, a list), the beginning counts.
  if (wanted.ends_with(' '))
    CHECK(got.substr(0, wanted.size()) == wanted);
  else
    CHECK(got == wanted);
  CHECK(got.find('\n') == std::string::npos);
}

TEST_CASE("no value in a configuration can break the error sentence or control the terminal") {
  CHECK(sentence("site = \"a\"\n[socks]\nlisten = \"\\n\\u001b[2J:1\"\n") ==
        "dir/a.toml:3: [socks] listen = \"??[2J:1\" has no IPv4 or IPv6 address before its port.");
}

TEST_CASE("a feature with a dot is accepted with and without quotes") {
  const std::string head = "site = \"branch\"\n" + kIdentity + "[socks]\nlisten = \"127.0.0.1:1080\"\n";
  Features wanted = standard_features(longhaul::modules::feature_table());
  wanted.modules.set("smb.metadata", 0);
  CHECK(read_text(head + "[features]\nsmb.metadata = false\n", "a").features == wanted);
  CHECK(read_text(head + "[features]\n\"smb.metadata\" = false\nsmb = true\n", "a").features == wanted);
  const auto rules =
      read_text(head + "[[rule]]\nfeatures = { smb.metadata = false, fec = \"off\" }\n", "a").rules;
  REQUIRE(rules.size() == 1);
  CHECK(rules[0].features ==
        std::vector<std::pair<std::string, std::string>>{{"fec", "off"}, {"smb.metadata", "false"}});
}

TEST_CASE("characters beyond ASCII are accepted in double quotes and comments, and only there") {
  const std::pair<std::string_view, std::string_view> good[] = {
      {"", ""},
      {"a", "a"},
      {"\xef\xbb\xbf"
       "a = 1",
       "a = 1"},
      {"# \u00e9", "# ??"},
      {"b = \"\\\"\u00e9\" # \u00e9\nc", "b = \"\\\"\\U000000e9\" # ??\nc"},
      {"a = \"\"\"x\\\"\"\u00e9\"\"\"\"\" # '", "a = \"\"\"x\\\"\"\\U000000e9\"\"\"\"\" # '"},
      {"a = '\\' # '\u00e9", "a = '\\' # '??"},
      {"a = \"\" # \"\u00e9", "a = \"\" # \"??"},
      {"a = \"\U0001f600\\\\\"", "a = \"\\U0001f600\\\\\""},
      {"a.\"\u00e9\" = 1", "a.\"\\U000000e9\" = 1"},
  };
  for (const auto& [text, plain] : good) {
    CAPTURE(text);
    CHECK(plain_ascii(text).foreign_line == 0);
    CHECK(plain_ascii(text).text == plain);
  }
  for (std::string_view bad :
       {"\n\u00e9", "\na = \"x\"\u00e9", "a = '''\n'''\u00e9", "a = '\\'\n'b' = \u00e9",
        "a = \"\"\"\n\"\"\"\u00e9\"", "# x\n\u00e9", "a = 'x\n\u00e9'", "\na = '\u00e9'", "\na = \"\\\u00e9\"",
        "\na = \"\xc3\"", "\na = \"\xed\xa0\x80\"", "\na = \"\xc0\x80\"", "\na = \"\xf4\x90\x80\x80\"", "\na = \"\xff\""}) {
    CAPTURE(bad);
    CHECK(plain_ascii(bad).foreign_line == 2u);
  }
}

TEST_CASE("listeners on different addresses or families share a port") {
  CHECK(sentence("site = \"a\"\n" + kIdentity +
                 "[[forward]]\nlisten = \"127.0.0.1:1\"\nto = \"b:1\"\n[[forward]]\nlisten = "
                 "\"127.0.0.2:1\"\nto = \"b:1\"\n[socks]\nlisten = \"[::1]:1\"\n") == "accepted");
}

TEST_CASE("a TOML syntax error is explained with the likely mistake") {
  CHECK(sentence("site = \"a\nstate_dir = \"b\"\n").ends_with(":1: this is not valid TOML: A closing \" is missing."));
  CHECK(sentence("site = \"a\"\nstate_dir = 'b\n").ends_with(" A closing ' is missing."));
  CHECK(sentence("site = a\n").ends_with(" A text needs quotes: \"a\"."));
  CHECK(sentence("site = \"a\"\n[link]\nlisten = 10.1.1.1:7600 # here\n").ends_with(" A text needs quotes: \"10.1.1.1:7600\"."));
  CHECK(sentence("site = \"a\"\n[intercept]\ninterfaces = [\"lan1\", lan0]\n").ends_with(" A text needs quotes: \"lan0\"."));
  CHECK(sentence("site = \"a\"\n[dictionary]\nmemory = 64MiB\n").ends_with(" A text needs quotes: \"64MiB\"."));
  CHECK(sentence("site = branch\n").ends_with(" A text needs quotes: \"branch\"."));
  CHECK(sentence("site = /etc # here\n").ends_with(" A text needs quotes: \"/etc\"."));
  CHECK(sentence("site =\n").ends_with(" There is no value after the equals sign."));
  CHECK_FALSE(sentence("site = \"a\"\n[link\n").ends_with("missing."));
}

TEST_CASE("mistakes in the paths of a peer") {
  const std::string peer =
      "[link]\nlisten = \"[::]:7600\"\n[[peer]]\nname = \"b\"\n" + kFingerprint;  // lines 5 to 9
  const std::string mpls = "[[peer.path]]\nname = \"mpls\"\naddress = \"10.0.0.2:7600\"\n";
  const auto [text, wanted] = GENERATE_COPY(table<std::string, std::string>({
      {"policy = \"sum\"\n",
       "dir/a.toml:7: [[peer]] policy has no effect without [[peer.path]], which this peer does not have."},
      {"policy = \"fastest\"\n" + mpls, "dir/a.toml:10: [[peer]] policy cannot be \"fastest\""},
      {"address = \"10.0.0.2:7600\"\n" + mpls,
       "dir/a.toml:7: [[peer]] address must be set in each [[peer.path]] instead, because this peer has "
       "paths."},
      {"rate = \"1mbit\"\n" + mpls, "dir/a.toml:7: [[peer]] rate must be set in each [[peer.path]] instead"},
      {"[peer.path]\nname = \"mpls\"\n",
       "dir/a.toml:10: there can be several of this table; write [[peer.path]] with double brackets, not "
       "[peer.path]."},
      {"[[peer.path]]\n", "dir/a.toml:10: [[peer.path]] needs the key name"},
      {"[[peer.path]]\nname = \"m\"\nlocl = \"wan1\"\n",
       "dir/a.toml:12: [[peer.path]] has no key \"locl\". Did you mean local?"},
      {mpls + "local = \"no/interface\"\n",
       "dir/a.toml:13: [[peer.path]] local = \"no/interface\" is neither an address nor the name of an "
       "interface."},
      {mpls + "local = \"fd00::1\"\n",
       "dir/a.toml:13: [[peer.path]] local = \"fd00::1\" cannot send to 10.0.0.2"},
      {"[[peer.path]]\nname = \"m\"\nlocal = \"wan1\"\n",
       "dir/a.toml:12: [[peer.path]] local has no effect without address"},
      {mpls + mpls, "dir/a.toml:13: [[peer.path]] name = \"mpls\" is already the name of another path."},
      {mpls + "[[peer.path]]\nname = \"internet\"\n",
       "dir/a.toml:13: [[peer.path]] \"internet\": either all paths of a peer have an address, or none"},
      {mpls + "[[peer.path]]\nname = \"internet\"\naddress = \"10.0.0.2:7600\"\n",
       "dir/a.toml:13: [[peer.path]] \"internet\" has the same address and local as \"mpls\""},
      {mpls + "cost = 0\n", "dir/a.toml:13: [[peer.path]] cost "},
      {mpls + "[[peer]]\nname = \"c\"\nfingerprint = \"sha256:" + std::string(64, 'c') +
           "\"\naddress = \"10.0.0.2:7600\"\n",
       "dir/a.toml:13: [[peer]] address = \"10.0.0.2:7600\" is already the address of the peer \"b\"."},
  }));
  INFO(text);
  const std::string said = sentence(after_head(peer + text));
  INFO(said);
  CHECK(said.starts_with(wanted));
}
