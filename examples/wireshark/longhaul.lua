-- SPDX-License-Identifier: Apache-2.0
-- Dissects the link between two Longhaul proxies: packets of the UDP carrier, and frames and records of both carriers
-- where the keys are known. The protocol is in proxy/link/PROTOCOL.md; README.md says how to capture.

local here = debug.getinfo(1, "S").source:match("^@?(.*[/\\])") or ""
local crypto = dofile(here .. "longhaul_crypto.lua")

local kPort = 7600
local kHeader, kTag = 13, 16
local kPacketsPerKey = 2 ^ 22  -- after which a sender changes its key

local link = Proto("longhaul", "Longhaul link")
local udp = Proto("longhaul_udp", "Longhaul UDP carrier")

link.prefs.key_log = Pref.string("Key log", "", "The file that [link] key_log names; set it for TLS too")

-- Fields.

local frame_types = {
  [1] = "HELLO", [2] = "STREAM", [3] = "ACK", [4] = "CREDIT", [5] = "CREDIT_RETURN", [6] = "RESET", [7] = "RESET_DONE",
  [8] = "PING", [9] = "PONG", [10] = "CLOSE", [11] = "OPEN_CREDIT", [0x20] = "PACKET_ACK", [0x21] = "PROBE",
  [0x22] = "PATH_CHALLENGE", [0x23] = "PATH_RESPONSE", [0x24] = "SYMBOL", [0x25] = "REPAIR", [0x26] = "RECOVERED",
  [0x27] = "PADDING",
}
local record_types = {
  [0] = "OPEN", [1] = "ANSWER", [2] = "DATA", [3] = "BLOCK", [4] = "MODULE", [5] = "END", [6] = "ABORT", [7] = "ALLOWED",
  [8] = "DICTIONARY", [9] = "FEATURES",
}
local outcomes = {
  [0] = "connected", "refused", "host_unreachable", "network_unreachable", "not_allowed", "timed_out", "name_not_found",
  "failed", "client_not_allowed",
}
local reset_codes = {[0] = "connection_reset", [1] = "aborted", [2] = "undecodable", [4] = "no_reader"}
local close_codes = {[0] = "shutting_down", "duplicate", "busy", "protocol_error", "refused"}

local u = {
  flags = ProtoField.uint8("longhaul_udp.flags", "Flags", base.HEX),
  phase = ProtoField.uint8("longhaul_udp.phase", "Key phase", base.DEC, nil, 0x01),
  id = ProtoField.bytes("longhaul_udp.connection", "Connection ID"),
  number = ProtoField.uint32("longhaul_udp.number", "Packet number (low 32 bits)"),
  ciphertext = ProtoField.bytes("longhaul_udp.ciphertext", "Encrypted frames"),
  tag = ProtoField.bytes("longhaul_udp.tag", "Authentication tag"),
}
udp.fields = {u.flags, u.phase, u.id, u.number, u.ciphertext, u.tag}

local f = {
  frame = ProtoField.uint8("longhaul.frame", "Frame", base.HEX, frame_types),
  length = ProtoField.uint32("longhaul.length", "Length"),
  body = ProtoField.bytes("longhaul.body", "Body"),
  stream = ProtoField.uint64("longhaul.stream", "Stream"),
  offset = ProtoField.uint64("longhaul.offset", "Offset"),
  payload = ProtoField.bytes("longhaul.payload", "Bytes of records"),
  record = ProtoField.string("longhaul.record", "Record"),
  details = ProtoField.string("longhaul.details", "Details"),
}
link.fields = {f.frame, f.length, f.body, f.stream, f.offset, f.payload, f.record, f.details}

local expert_bad = ProtoExpert.new("longhaul.malformed", "Malformed frame", expert.group.MALFORMED, expert.severity.ERROR)
local expert_key = ProtoExpert.new("longhaul_udp.undecrypted", "The key is not in the key log, or does not fit",
                                   expert.group.DECRYPTION, expert.severity.NOTE)
link.experts = {expert_bad}
udp.experts = {expert_key}

-- Reading numbers and texts out of strings. Nil: the end was reached before.

local Reader = {}
Reader.__index = Reader
local function reader(text, at) return setmetatable({text = text, at = at or 1}, Reader) end
function Reader:left() return #self.text - self.at + 1 end
function Reader:fixed(size)
  if self:left() < size then return nil end
  local value = 0
  for i = self.at, self.at + size - 1 do value = value * 256 + self.text:byte(i) end
  self.at = self.at + size
  return value
end
function Reader:varint()  -- RFC 9000, section 16
  local first = self.text:byte(self.at)
  if not first then return nil end
  local size = ({1, 2, 4, 8})[math.floor(first / 64) + 1]
  local value = self:fixed(size)
  return value and value - math.floor(first / 64) * 2 ^ (8 * size - 2)
end
function Reader:bytes(size)
  if not size or self:left() < size then return nil end
  self.at = self.at + size
  return self.text:sub(self.at - size, self.at - 1)
end
function Reader:sized() return self:bytes(self:varint()) end

local function number(value) return value and ("%.0f"):format(value) or "?" end
local function hex(text) return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local function printable(text) return (text:gsub("[^\32-\126]", ".")) end
local function named(names, value) return value and (names[value] or number(value)) or "?" end

-- What bodies say, as text.

local function address(r, size)
  local bytes = r:bytes(size)
  if not bytes then return "?" end
  if size == 4 then return ("%d.%d.%d.%d"):format(bytes:byte(1, 4)) end
  local groups = {}
  for i = 1, 16, 2 do groups[#groups + 1] = ("%x"):format(bytes:byte(i) * 256 + bytes:byte(i + 1)) end
  return "[" .. table.concat(groups, ":") .. "]"
end

local function host_and_port(r)
  local kind = r:fixed(1)
  if kind == 0 then return "none" end
  local host = kind == 4 and address(r, 4) or kind == 6 and address(r, 16) or kind == 1 and printable(r:sized() or "?") or "?"
  return host .. ":" .. number(r:fixed(2))
end

local frame_details = {
  [1] = function(r)
    local text = "version " .. number(r:varint()) .. ", session " .. hex(r:bytes(16) or "") .. ", nonce " .. hex(r:bytes(16) or "")
    text = text .. ", site " .. printable(r:sized() or "?") .. ", UDP port " .. number(r:fixed(2)) .. ", epoch " ..
           number(r:varint()) .. ", ciphers " .. number(r:fixed(1))
    if r:left() > 0 then text = text .. ", blocks " .. number(r:varint()) end
    for _ = 1, math.min(r:left() > 0 and r:varint() or 0, 64) do
      text = text .. ", module " .. printable(r:sized() or "?") .. " " .. number(r:varint())
    end
    for _ = 1, math.min(r:left() > 0 and r:varint() or 0, 64) do text = text .. ", feature " .. printable(r:sized() or "?") end
    for _ = 1, math.min(r:left() > 0 and r:varint() or 0, 64) do text = text .. ", path " .. printable(r:sized() or "?") end
    return text
  end,
  [3] = function(r)
    local list = {}
    while r:left() > 0 and #list < 1000 do list[#list + 1] = "stream " .. number(r:varint()) .. " to " .. number(r:varint()) end
    return table.concat(list, ", ")
  end,
  [4] = function(r)
    local list = {}
    while r:left() > 0 and #list < 1000 do
      list[#list + 1] = "stream " .. number(r:varint()) .. " generation " .. number(r:varint()) .. " limit " .. number(r:varint())
    end
    return table.concat(list, ", ")
  end,
  [5] = function(r)
    return "stream " .. number(r:varint()) .. " generation " .. number(r:varint()) .. " limit " .. number(r:varint())
  end,
  [6] = function(r)
    return "stream " .. number(r:varint()) .. " " .. named(reset_codes, r:fixed(1)) .. " open credit " .. number(r:varint())
  end,
  [7] = function(r) return "stream " .. number(r:varint()) end,
  [8] = function(r) return number(r:varint()) end,
  [9] = function(r) return number(r:varint()) end,
  [10] = function(r) return named(close_codes, r:fixed(1)) .. " " .. printable(r:sized() or "") end,
  [11] = function(r) return "limit " .. number(r:varint()) .. " floor " .. number(r:varint()) end,
  [0x20] = function(r)
    local largest, delay, arrival = r:varint(), r:varint(), r:varint()
    local top, length = largest or 0, r:varint() or 0
    local list = {number(top - length) .. "-" .. number(top)}
    while r:left() > 0 and #list < 64 do
      top = top - length - (r:varint() or 0) - 2
      length = r:varint() or 0
      list[#list + 1] = number(top - length) .. "-" .. number(top)
    end
    return table.concat(list, " ") .. ", delay " .. number(delay) .. " us, arrival " .. number(arrival) .. " us"
  end,
  [0x22] = function(r) return hex(r:bytes(8) or "") end,
  [0x23] = function(r) return hex(r:bytes(8) or "") end,
  [0x24] = function(r) return "class " .. number(r:fixed(1)) .. " symbol " .. number(r:varint()) end,
  [0x25] = function(r)
    return "class " .. number(r:fixed(1)) .. " first " .. number(r:varint()) .. " count " .. number(r:varint()) .. " key " ..
           number(r:varint())
  end,
  [0x26] = function(r)
    local list, above = {}, nil
    while r:left() > 0 and #list < 64 do
      local value = r:varint() or 0
      above = above and above - 1 - value or value
      list[#list + 1] = number(above)
    end
    return table.concat(list, " ")
  end,
}

local record_details = {
  [0] = function(r)
    local to, client = host_and_port(r), host_and_port(r)
    local source, forward, reverse = r:fixed(1), r:varint(), r:varint()
    local module, version = r:sized(), r:varint()
    return "to " .. to .. " for " .. client .. ", source " .. number(source) .. ", credit " .. number(forward) .. "/" ..
           number(reverse) .. (module and #module > 0 and ", module " .. printable(module) .. " " .. number(version) or "")
  end,
  [1] = function(r) return named(outcomes, r:fixed(1)) .. ", flags " .. number(r:fixed(1)) end,
}

-- Who sends: a side of a session, because its carriers, one on each path, move the same streams between other addresses.
-- On TCP the two HELLOs of a connection tell the session, for UDP the key log does. A session whose beginning was not
-- captured has as its dialler the dialler of the first connection that was.

local connections, diallers = {}, {}  -- by both ends; the name of the site that is the dialler, by session

local function ends(pinfo)
  local from = tostring(pinfo.src) .. " " .. pinfo.src_port
  local to = tostring(pinfo.dst) .. " " .. pinfo.dst_port
  return from, from < to and from .. " " .. to or to .. " " .. from
end

local function on_hello(pinfo, body)
  if pinfo.visited then return end
  local r = reader(body)
  r:varint()
  local from, both = ends(pinfo)
  local hello = {from = from, session = r:bytes(16), nonce = r:bytes(16), site = r:sized()}
  if not hello.site then return end
  local known = connections[both]
  if not known or known.session or known.dialler.from == from then
    connections[both] = {dialler = hello}
    return
  end
  local dialler = known.dialler
  local goes_on = dialler.session == hello.session and hello.session ~= ("\0"):rep(16)
  known.session = hex(goes_on and hello.session or crypto.sha256(dialler.nonce .. hello.nonce):sub(1, 16))
  if not goes_on or not diallers[known.session] then diallers[known.session] = dialler.site end
  known.same_sides = diallers[known.session] == dialler.site
end

local function tcp_sender(pinfo)
  local from, both = ends(pinfo)
  local known = connections[both]
  if not known or not known.session then return nil end
  return known.session .. ((known.dialler.from == from) == known.same_sides and " dialler" or " acceptor")
end

-- Records of a stream direction, in the order of their bytes. Frames come in any order, on all carriers; what a packet
-- completed is remembered, because Wireshark dissects packets again and again.

local streams, remembered = {}, {}
local kMostWaiting, kMostHead = 1000, 70000

local function records_in(stream, text)
  local found = {}
  local at = 1
  if stream.skip > 0 then
    local taken = math.min(stream.skip, #text)
    stream.skip, at = stream.skip - taken, taken + 1
  end
  text = stream.head .. text:sub(at)
  stream.head = ""
  local r = reader(text)
  while r:left() > 0 do
    local begin = r.at
    local kind = r:fixed(1)
    local size = r:varint()
    local known = kind and record_details[kind]
    if not size or (known and r:left() < size and size <= kMostHead) then
      stream.head = text:sub(begin)
      break
    end
    local line = named(record_types, kind) .. ", " .. number(size) .. " bytes"
    if known then line = named(record_types, kind) .. " " .. known(reader(r.text:sub(r.at, r.at + size - 1))) end
    if kind == 3 then
      local head = reader(r.text:sub(r.at, r.at + 32))
      local codec, plain = head:fixed(1), head:varint()
      line = line .. (plain and ", codec " .. number(codec) .. ", " .. number(plain) .. " plain bytes" or "")
    end
    found[#found + 1] = line
    local there = math.min(size, r:left())
    r.at = r.at + there
    stream.skip = size - there
  end
  return found
end

local function records(pinfo, sender, id, offset, payload)
  local key = pinfo.number .. "/" .. number(id) .. "/" .. number(offset)
  if remembered[key] or pinfo.visited then return remembered[key] or {} end
  local name = (sender or tostring(pinfo.src) .. ">" .. tostring(pinfo.dst)) .. "/" .. number(id)
  local stream = streams[name]
  if not stream then
    stream = {next = 0, skip = 0, head = "", waiting = {}, waits = 0}
    streams[name] = stream
  end
  local found = {}
  if offset > stream.next then
    local other = stream.waiting[offset]
    if other and #other < #payload then
      stream.waiting[offset] = payload
    elseif not other and stream.waits < kMostWaiting then
      stream.waiting[offset] = payload
      stream.waits = stream.waits + 1
    end
  else
    while payload do
      local fresh = payload:sub(stream.next - offset + 1)
      stream.next = stream.next + #fresh
      for _, line in ipairs(records_in(stream, fresh)) do found[#found + 1] = line end
      payload = nil
      if stream.waits > 0 then
        for at, text in pairs(stream.waiting) do
          if at <= stream.next then
            offset, payload = at, text
            stream.waiting[at] = nil
            stream.waits = stream.waits - 1
            break
          end
        end
      end
    end
  end
  remembered[key] = found
  return found
end

-- Frames.

-- The length of the frame at `at`, with its head; nil and how many bytes are missing at least.
local function frame_size(tvb, at)
  local r = reader(tvb:raw(at, math.min(9, tvb:len() - at)))
  r:fixed(1)
  local size = r:varint()
  if not size then return nil, 1 end
  local whole = r.at - 1 + size
  if at + whole > tvb:len() then return nil, at + whole - tvb:len() end
  return whole, r.at - 1, size
end

local function add_frame(tvb, at, whole, head, pinfo, tree, sender)
  local kind = tvb(at, 1):uint()
  local name = frame_types[kind] or ("type %d"):format(kind)
  local branch = tree:add(link, tvb(at, whole), "Frame " .. name)
  branch:add(f.frame, tvb(at, 1))
  local body_size = whole - head
  if head > 1 then branch:add(f.length, tvb(at + 1, head - 1), body_size) end
  if body_size == 0 then return name end
  local body = tvb:raw(at + head, body_size)
  if kind == 1 then on_hello(pinfo, body) end
  if kind == 2 then
    local r = reader(body)
    local id, offset = r:varint(), r:varint()
    if not offset then
      branch:add_proto_expert_info(expert_bad)
      return name
    end
    branch:add(f.stream, tvb(at + head, 1), UInt64(id % 2 ^ 32, math.floor(id / 2 ^ 32)))
    branch:add(f.offset, tvb(at + head, r.at - 1), UInt64(offset % 2 ^ 32, math.floor(offset / 2 ^ 32)))
    local text = r:bytes(r:left())
    name = name .. " " .. number(id) .. " at " .. number(offset)
    branch:append_text((" %s at %s, %d bytes"):format(number(id), number(offset), #text))
    if #text > 0 then branch:add(f.payload, tvb(at + whole - #text, #text)) end
    for _, line in ipairs(records(pinfo, sender, id, offset, text)) do branch:add(f.record, tvb(at + whole - #text, #text), line) end
    return name
  end
  branch:add(f.body, tvb(at + head, body_size))
  if frame_details[kind] then
    local text = frame_details[kind](reader(body))
    branch:add(f.details, tvb(at + head, body_size), text)
    branch:append_text(", " .. text)
  end
  return name
end

-- On TCP: what TLS carried.
function link.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "Longhaul"
  local top = tree:add(link, tvb())
  local at, names = 0, {}
  while at < tvb:len() do
    local whole, head = frame_size(tvb, at)
    if not whole then
      pinfo.desegment_offset = at
      pinfo.desegment_len = head == 1 and DESEGMENT_ONE_MORE_SEGMENT or head
      break
    end
    names[#names + 1] = add_frame(tvb, at, whole, head, pinfo, top, tcp_sender(pinfo))
    at = at + whole
  end
  if #names > 0 then pinfo.cols.info = "TCP: " .. table.concat(names, ", ") end
end

-- Packets.

local directions, key_log_read, numbers = {}, nil, {}

local function read_key_log()
  key_log_read = os.time()
  local file = link.prefs.key_log ~= "" and io.open(link.prefs.key_log, "r")
  if not file then return end
  for line in file:lines() do
    local id, cipher, secret, sender = line:match("^LONGHAUL_UDP_SECRET (%x+) (%S+) (%x+) (%x+ %a+)$")
    if id and not directions[id] then
      directions[id] = crypto.direction(cipher, crypto.from_hex(secret))
      directions[id].sender = sender
    end
  end
  file:close()
end

-- During a live capture the file grows.
local function direction_of(id)
  if not directions[id] and key_log_read ~= os.time() then read_key_log() end
  return directions[id]
end

function udp.init()
  directions, key_log_read, numbers, streams, remembered = {}, nil, {}, {}, {}
  connections, diallers = {}, {}
end

-- RFC 9000, appendix A.3.
local function full_number(direction, low)
  local expected = direction.highest and direction.highest + 1 or 0
  local candidate = math.floor(expected / 2 ^ 32) * 2 ^ 32 + low
  if candidate + 2 ^ 31 <= expected then candidate = candidate + 2 ^ 32 end
  if candidate > expected + 2 ^ 31 and candidate >= 2 ^ 32 then candidate = candidate - 2 ^ 32 end
  return candidate
end

local function makes_sense(plain)
  local r = reader(plain)
  while r:left() > 0 do
    local kind, size = r:fixed(1), r:varint()
    if not (frame_types[kind] and size and r:bytes(size)) then return false end
  end
  return true
end

-- Without the tag the right key shows in frames that are whole. It changes every few million packets.
local function decrypt(direction, phase, low, text)
  local value = full_number(direction, low)
  local likely = math.floor(value / kPacketsPerKey)
  for _, distance in ipairs({0, -1, 1, -2, 2}) do
    local generation = likely + distance
    if generation >= 0 and generation % 2 == phase then
      local plain = crypto.decrypt(direction, generation, value, text)
      if makes_sense(plain) then
        direction.highest = math.max(direction.highest or 0, value)
        return plain, value
      end
    end
  end
end

local function add_packet(tvb, pinfo, tree)
  local top = tree:add(udp, tvb())
  local flags = tvb(0, 1):uint()
  top:add(u.flags, tvb(0, 1)):add(u.phase, tvb(0, 1))
  top:add(u.id, tvb(1, 8))
  top:add(u.number, tvb(9, 4))
  local low = tvb(9, 4):uint()
  local id = hex(tvb:raw(1, 8))
  local name = "UDP: packet " .. low
  top:append_text(", packet " .. low)
  local size = tvb:len() - kHeader - kTag
  top:add(u.ciphertext, tvb(kHeader, size))
  top:add(u.tag, tvb(kHeader + size, kTag))
  local direction = direction_of(id)
  if not direction then return name .. " (encrypted)" end
  local plain = decrypt(direction, flags % 2, low, tvb:raw(kHeader, size))
  if not plain then
    top:add_proto_expert_info(expert_key)
    return name .. " (cannot be decrypted)"
  end
  local inner = ByteArray.new(plain, true):tvb("Decrypted frames")
  local at, names = 0, {}
  while at < inner:len() do
    local whole, head = frame_size(inner, at)
    names[#names + 1] = add_frame(inner, at, whole, head, pinfo, top, direction.sender)
    at = at + whole
  end
  return name .. ": " .. table.concat(names, ", ")
end

local function is_packet(tvb)
  if tvb:len() < kHeader + kTag + 1 then return false end
  local flags = tvb(0, 1):uint()
  return flags == 0x40 or flags == 0x41
end

-- Where the sender's kernel segments (UDP GSO), a capture there has many packets in one datagram: each begins with the
-- same connection ID.
local function packets_in(tvb)
  local text = tvb:raw()
  local id = text:sub(2, 9)
  local starts, from = {1}, 1 + kHeader + kTag + 1
  while true do
    local at = text:find(id, from, true)
    if not at then break end
    local flags = text:byte(at - 1)
    if flags == 0x40 or flags == 0x41 then
      starts[#starts + 1] = at - 1
      from = at - 1 + kHeader + kTag + 1
    else
      from = at + 1
    end
  end
  return starts
end

function udp.dissector(tvb, pinfo, tree)
  if not is_packet(tvb) then return 0 end
  pinfo.cols.protocol = "Longhaul"
  local starts, names = packets_in(tvb), {}
  for i, at in ipairs(starts) do
    local last = starts[i + 1] and starts[i + 1] - 1 or tvb:len()
    names[i] = add_packet(tvb(at - 1, last - at + 1):tvb(), pinfo, tree)
  end
  pinfo.cols.info = table.concat(names, "; ")
  return tvb:len()
end

DissectorTable.get("udp.port"):add(kPort, udp)
-- Another port shows itself by a connection ID of the key log.
udp:register_heuristic("udp", function(tvb, pinfo, tree)
  if not is_packet(tvb) or not direction_of(hex(tvb:raw(1, 8))) then return false end
  udp.dissector(tvb, pinfo, tree)
  return true
end)
DissectorTable.get("tcp.port"):add(kPort, Dissector.get("tls"))
DissectorTable.get("tls.port"):add(kPort, link)
