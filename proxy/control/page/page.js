// SPDX-License-Identifier: Apache-2.0
// The status page: reads the control API of the daemon that served it and shows the answers. Everything that comes from
// the network is put in as text, never as markup. README.md in the folder above describes the fields.
'use strict';

// ---- the API

const kTokenKey = 'longhaul-token';

// `longhaul page` puts the token behind the #, which browsers do not send. It leaves the address bar at once.
function takeTokenFromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return;
  sessionStorage.setItem(kTokenKey, token);
  history.replaceState(null, '', location.pathname);
}

async function ask(path, body) {
  const headers = {};
  const token = sessionStorage.getItem(kTokenKey);
  if (token) headers.Authorization = 'Bearer ' + token;
  const options = {headers, cache: 'no-store', credentials: 'omit', redirect: 'error'};
  if (body !== undefined) {
    options.method = 'POST';
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const answer = await response.json();
  if (response.ok) return answer;
  if (response.status === 401 && token === sessionStorage.getItem(kTokenKey)) sessionStorage.removeItem(kTokenKey);
  const error = new Error(answer.error || 'HTTP status ' + response.status);
  error.status = response.status;
  throw error;
}

// ---- text

function threeDigits(value) {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

function withUnit(value, step, units) {
  let unit = 0;
  for (; Math.abs(value) >= step * 0.9995 && unit + 1 < units.length; ++unit) value /= step;
  return (unit === 0 ? String(Math.round(value)) : threeDigits(value)) + '\u00a0' + units[unit];
}

const bytesText = bytes => withUnit(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
const rateText = bits => withUnit(bits, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']);
const percent = share => (100 * share).toFixed(share > 0.0995 && share < 0.985 ? 0 : 1) + '\u00a0%';
const orDash = (value, text) => value === null || value === undefined ? '–' : text(value);
const msText = ms => threeDigits(Math.max(ms, 0)) + '\u00a0ms';

function ageText(seconds) {
  if (seconds < 60) return Math.floor(seconds) + '\u00a0s';
  if (seconds < 3600) return Math.floor(seconds / 60) + '\u00a0min';
  if (seconds < 86400) return Math.floor(seconds / 3600) + '\u00a0h ' + Math.floor(seconds % 3600 / 60) + '\u00a0min';
  return Math.floor(seconds / 86400) + '\u00a0d ' + Math.floor(seconds % 86400 / 3600) + '\u00a0h';
}

const kApplications = {21: 'FTP', 22: 'SSH', 25: 'SMTP', 53: 'DNS', 80: 'HTTP', 88: 'Kerberos', 110: 'POP3', 111: 'RPC',
  135: 'MS-RPC', 139: 'SMB', 143: 'IMAP', 389: 'LDAP', 443: 'HTTPS', 445: 'SMB', 465: 'SMTPS', 587: 'SMTP',
  636: 'LDAPS', 873: 'rsync', 993: 'IMAPS', 995: 'POP3S', 1433: 'SQL Server', 1521: 'Oracle', 2049: 'NFS', 3260: 'iSCSI',
  3306: 'MySQL', 3389: 'RDP', 5432: 'PostgreSQL', 5900: 'VNC', 8080: 'HTTP'};
const portText = port => port === null ? 'other ports' : kApplications[port] ? `${port} ${kApplications[port]}` : String(port);

// ---- elements

const get = id => document.getElementById(id);

function el(name, properties, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'class') element.className = value;
    else if (value === true) element.setAttribute(key, '');
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A table whose rows stay the same elements while they have the same key, so that the focus stays where it is. A column
// has a title, a text or an element for each item, and perhaps a class for its cells.
class Table {
  constructor(table, columns, {detail, empty} = {}) {
    this.columns = columns;
    this.detail = detail;
    this.rows = new Map();
    this.body = el('tbody');
    this.empty = el('tr', {}, el('td', {colspan: columns.length, class: 'quiet'}, empty || 'nothing yet'));
    const heads = columns.map(column => el('th', {scope: 'col', class: column.number ? 'n' : ''}, column.title));
    table.replaceChildren(el('thead', {}, el('tr', {}, ...heads)), this.body);
  }

  show(items, keyOf) {
    const kept = new Set();
    const wanted = [];
    for (const item of items) {
      const key = keyOf(item);
      kept.add(key);
      wanted.push(...this.rowOf(key, item));
    }
    for (const key of this.rows.keys()) if (!kept.has(key)) this.rows.delete(key);
    if (wanted.length === 0) wanted.push(this.empty);
    wanted.forEach((row, at) => {
      if (this.body.children[at] !== row) this.body.insertBefore(row, this.body.children[at] || null);
    });
    while (this.body.children.length > wanted.length) this.body.lastChild.remove();
  }

  rowOf(key, item) {
    let row = this.rows.get(key);
    if (!row) {
      row = {cells: this.columns.map(column => el('td', {class: column.number ? 'n' : ''})), item};
      row.line = el('tr', {}, ...row.cells);
      this.rows.set(key, row);
    }
    row.item = item;
    this.columns.forEach((column, at) => {
      const cell = row.cells[at];
      if (column.fill) column.fill(cell, item, row);
      else setText(cell, column.text(item));
      const kind = column.kind ? column.kind(item) : '';
      cell.className = [column.number ? 'n' : '', kind].join(' ').trim();
    });
    return this.detail ? this.detail(row) : [row.line];
  }
}

function choice(group, options, chosen, onChoice) {
  const buttons = options.map(([value, text]) => el('button', {
    type: 'button',
    'aria-pressed': String(value === chosen),
    onclick: event => {
      for (const button of buttons) button.setAttribute('aria-pressed', String(button === event.currentTarget));
      onChoice(value);
    },
  }, text));
  group.replaceChildren(...buttons);
}

// ---- verdict and tiles

function showVerdict(status) {
  const {ok, problems, saved_bytes: saved, saved_share: share} = status.verdict;
  const serious = problems.some(problem => problem.serious);
  const section = get('verdict');
  section.className = 'verdict ' + (ok ? 'good' : serious ? 'bad' : 'warn');
  const savings = share === null ? 'Nothing carried yet.'
    : saved >= 0 ? `Saved ${bytesText(saved)} (${percent(share)}) of the WAN since the start.`
      : `The WAN carried ${bytesText(-saved)} more than the LAN since the start.`;
  const word = ok ? 'OK. ' : problems.length === 1 ? problems[0].sentence + ' ' : `${problems.length} problems. `;
  const text = word + savings + problems.map(problem => problem.sentence + problem.remedy).join('');
  if (section.dataset.text === text) return;
  section.dataset.text = text;
  const lines = [el('p', {}, el('span', {class: 'word'}, word), savings)];
  if (problems.length === 1) lines.push(el('p', {}, 'Remedy: ' + problems[0].remedy + '.'));
  if (problems.length > 1)
    lines.push(el('ul', {}, ...problems.map(problem => el('li', {}, `${problem.sentence} Remedy: ${problem.remedy}.`))));
  section.replaceChildren(...lines);
}

function tile(title, value) {
  return el('div', {}, el('span', {}, title), el('b', {}, value));
}

function showTiles(status) {
  const lan = lanOf(status.flows.bytes), wan = wanOf(status.flows.bytes);
  const rate = of => status.throughput ? rateText(status.throughput[of]) : '–';
  const live = status.flows.live;
  const optimised = status.links.reduce((all, link) => all + link.streams, 0);
  get('tiles').replaceChildren(
    tile('From the LAN now', rate('lan_in_bits')),
    tile('To the WAN now', rate('wan_out_bits')),
    tile('From the WAN now', rate('wan_in_bits')),
    tile('To the LAN now', rate('lan_out_bits')),
    tile('Bytes on the LAN', bytesText(lan)),
    tile('Bytes on the WAN', bytesText(wan)),
    tile('Live flows', `${live} of ${status.flows.limit}`),
    tile('Streams on links', String(optimised)),
    tile('Interception', status.intercept.state.replace('_', ' ')));
}

// ---- the chart

const kRanges = [[1, '10 minutes'], [60, 'Day'], [3600, '30 days']];
const chart = {step: 1, from: 0, slots: [], readAt: 0};

async function readHistory() {
  const step = chart.step;
  const answer = await ask('v1/history?step=' + step);
  if (step !== chart.step) return;  // the range was changed meanwhile
  chart.from = answer.from_s;
  // The newest interval has not ended: its bytes would look like a fall.
  chart.slots = answer.slots.slice(0, -1);
  drawChart();
}

function svg(name, properties, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const lanRate = slot => 8 * (slot[0] + slot[1]) / chart.step;
const wanRate = slot => 8 * (slot[2] + slot[3]) / chart.step;

function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1000)));
  return [1, 2, 5, 10].map(step => step * power).find(step => step >= value);
}

function timeText(slot, withDate) {
  const date = new Date((chart.from + slot * chart.step) * 1000);
  const time = {hour: '2-digit', minute: '2-digit', ...(chart.step === 1 ? {second: '2-digit'} : {})};
  if (chart.step === 3600 && !withDate) return date.toLocaleDateString([], {day: 'numeric', month: 'short'});
  return withDate && chart.step > 1
    ? date.toLocaleString([], {day: 'numeric', month: 'short', ...time}) : date.toLocaleTimeString([], time);
}

// One path with a gap where no daemon ran.
function linePath(rate, x, y) {
  let path = '';
  let pen = 'M';
  chart.slots.forEach((slot, at) => {
    if (!slot) { pen = 'M'; return; }
    path += `${pen}${x(at).toFixed(1)} ${y(rate(slot)).toFixed(1)}`;
    pen = 'L';
  });
  return path;
}

function areaPath(x, y) {
  let path = '';
  let begin = -1;
  const {slots} = chart;
  for (let at = 0; at <= slots.length; ++at) {
    if (at < slots.length && slots[at]) {
      path += `${begin < 0 ? `M${x(at).toFixed(1)} ${y(0)}` : ''}L${x(at).toFixed(1)} ${y(lanRate(slots[at])).toFixed(1)}`;
      if (begin < 0) begin = at;
    } else if (begin >= 0) {
      path += `L${x(at - 1).toFixed(1)} ${y(0)}Z`;
      begin = -1;
    }
  }
  return path;
}

function drawChart() {
  const box = get('chart');
  const width = Math.max(box.clientWidth, 200), height = Math.max(box.clientHeight, 100);
  const left = 74, right = 8, top = 8, bottom = 22;
  const {slots} = chart;
  const top_rate = niceCeiling(slots.reduce((most, slot) => slot ? Math.max(most, lanRate(slot), wanRate(slot)) : most, 0));
  const x = at => left + (width - left - right) * at / Math.max(slots.length - 1, 1);
  const y = rate => top + (height - top - bottom) * (1 - rate / top_rate);
  const parts = [];
  for (let i = 0; i <= 4; ++i) {
    const rate = top_rate * i / 4;
    parts.push(svg('line', {class: 'grid', x1: left, x2: width - right, y1: y(rate), y2: y(rate)}),
      svg('text', {x: left - 8, y: y(rate) + 4, 'text-anchor': 'end'}, i === 0 ? '0' : rateText(rate)));
  }
  const marks = Math.max(2, Math.min(6, Math.floor(width / 130)));
  for (let i = 0; i < marks; ++i) {
    const at = Math.round((slots.length - 1) * i / (marks - 1));
    parts.push(svg('text', {x: x(at), y: height - 5, 'text-anchor': i === 0 ? 'start' : i === marks - 1 ? 'end' : 'middle'},
      slots.length ? timeText(at) : ''));
  }
  parts.push(svg('path', {class: 'area', d: areaPath(x, y)}), svg('path', {class: 'lan', d: linePath(lanRate, x, y)}),
    svg('path', {class: 'wan', d: linePath(wanRate, x, y)}));
  chart.left = left;
  chart.width = width - left - right;
  const drawing = svg('svg', {viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true'}, ...parts);
  box.replaceChildren(drawing);
  showCursor();
  const known = slots.filter(slot => slot);
  const total = (a, b) => known.reduce((all, slot) => all + slot[a] + slot[b], 0);
  const lan = total(0, 1), wan = total(2, 3);
  const most = known.reduce((all, slot) => Math.max(all, slot[4]), 0);
  const words = known.length === 0 ? 'No samples yet.' : `In this range: LAN ${bytesText(lan)}, WAN ${bytesText(wan)}` +
    (lan > 0 ? `, ${percent(1 - wan / lan)} saved` : '') + `; at most ${most} flows at once.`;
  setText(get('chart-words'), words);
}

// By pointer, or by arrow keys while the chart has the focus.
function showCursor() {
  const box = get('chart');
  for (const old of box.querySelectorAll('.cursor, output')) old.remove();
  const at = chart.cursor;
  if (at === undefined || at < 0 || at >= chart.slots.length) return;
  const x = chart.left + chart.width * at / Math.max(chart.slots.length - 1, 1);
  box.firstChild.append(svg('line', {class: 'cursor', x1: x, x2: x, y1: 8, y2: box.clientHeight - 22}));
  const slot = chart.slots[at];
  const note = el('output', {}, timeText(at, true) + ': ' +
    (slot ? `LAN ${rateText(lanRate(slot))}, WAN ${rateText(wanRate(slot))}, ${slot[4]} flows` : 'the daemon did not run'));
  box.append(note);
  const width = note.offsetWidth;
  note.style.left = Math.max(0, Math.min(x + 8, box.clientWidth - width)) + 'px';
}

function startChart() {
  choice(get('ranges'), kRanges, chart.step, step => {
    Object.assign(chart, {step, slots: [], cursor: undefined});
    refresh('history');
  });
  get('legend').replaceChildren(el('span', {}, el('i', {class: 'lan'}), 'LAN'), el('span', {}, el('i', {class: 'wan'}), 'WAN'));
  const box = get('chart');
  box.setAttribute('aria-label', 'Rates on the LAN and on the WAN; arrow keys read single values');
  const move = at => {
    chart.cursor = at === undefined ? at : Math.max(0, Math.min(chart.slots.length - 1, at));
    showCursor();
  };
  box.addEventListener('pointermove', event =>
    move(Math.round((event.offsetX - chart.left) / chart.width * (chart.slots.length - 1))));
  box.addEventListener('pointerleave', () => move(undefined));
  box.addEventListener('blur', () => move(undefined));
  box.addEventListener('keydown', event => {
    const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
    if (step === undefined) return;
    event.preventDefault();
    move((chart.cursor === undefined ? chart.slots.length - 1 : chart.cursor) + step);
  });
  new ResizeObserver(() => drawChart()).observe(box);
}

// ---- links

function lossText(udp) {
  if (!udp || udp.packets_sent === 0) return '–';
  return percent((udp.packets_lost - Math.min(udp.spurious_losses, udp.packets_lost)) / udp.packets_sent);
}

function rateWords(rate) {
  const words = {configured: 'configured rate', limited: 'the line carries less than the configured rate', measured: 'measured rate'};
  let text = words[rate.law] || rate.law;
  if (rate.competes) text += '; other traffic fills the queue of the line';
  if (rate.policed) text += '; a policer drops packets above its rate';
  return text;
}

function linkNotes(link) {
  const notes = [];
  if (link.last_error && link.state !== 'up') notes.push('last connection error: ' + link.last_error);
  const udp = link.udp;
  if (udp && udp.state === 'up' && link.state === 'up')
    notes.push(`UDP ${link.carrier === 'udp' ? 'carries' : 'works but is not used'}; ${rateWords(udp.rate)}; ` +
      `${udp.repairs_sent} repair packets sent, ${udp.symbols_recovered} lost packets recovered`);
  if (udp && udp.state === 'failed' && link.state === 'up') notes.push('UDP is not answered; TCP carries');
  if (udp && udp.fallbacks > 0) notes.push(`fell back to TCP ${udp.fallbacks === 1 ? 'once' : udp.fallbacks + ' times'}`);
  const reduction = link.reduction;
  if (reduction && reduction.out.bytes.plain > 0)
    notes.push(`sent data reduced to ${percent(reduction.out.bytes.encoded / reduction.out.bytes.plain)} of its size`);
  if (reduction && reduction.in.bytes.plain > 0)
    notes.push(`received data had been reduced to ${percent(reduction.in.bytes.encoded / reduction.in.bytes.plain)}`);
  return notes.map(note => `${link.peer}: ${note}.`);
}

const kStateKinds = {up: 'good', silent: 'warn', down: 'bad', never_up: 'bad'};
const linksTable = () => new Table(get('links'), [
  {title: 'Peer', text: link => link.peer},
  {title: 'State', text: link => `${link.state.replace('_', ' ')} for ${ageText(link.state_age_s)}`, kind: link => kStateKinds[link.state]},
  {title: 'Carrier', text: link => link.state === 'up' || link.state === 'silent' ? orDash(link.carrier, carrier => carrier.toUpperCase()) : '–'},
  {title: 'RTT', number: true, text: link => orDash(link.rtt_ms, msText)},
  {title: 'Loss', number: true, text: link => lossText(link.udp)},
  {title: 'Queue', number: true, text: link => link.udp && link.udp.rate ? msText(link.udp.rate.queue_ms) : '–'},
  {title: 'Sends', number: true, text: link => link.throughput ? rateText(link.throughput.out_bits) : '–'},
  {title: 'Receives', number: true, text: link => link.throughput ? rateText(link.throughput.in_bits) : '–'},
  {title: 'Paced at', number: true, text: link => link.state === 'up' ? orDash(link.carrier === 'udp' && link.udp.pacing_rate_bits || link.delivery_rate_bits, rateText) : '–'},
  {title: 'Recovered', number: true, text: link => link.udp ? String(link.udp.symbols_recovered) : '–'},
  {title: 'Sent', number: true, text: link => bytesText(link.bytes_sent)},
  {title: 'Received', number: true, text: link => bytesText(link.bytes_received)},
  {title: 'Streams', number: true, text: link => String(link.streams)},
], {empty: 'No peer is configured.'});

function showLinks(status) {
  tables.links.show(status.links, link => link.peer);
  const notes = status.links.flatMap(linkNotes);
  const list = get('link-notes');
  if (list.dataset.text === notes.join()) return;
  list.dataset.text = notes.join();
  list.replaceChildren(...notes.map(note => el('li', {}, note)));
}

// ---- ports, talkers

const lanOf = bytes => bytes.lan_in + bytes.lan_out;
const wanOf = bytes => bytes.wan_in + bytes.wan_out;

// A share with a bar beside it.
function fillSaved(cell, bytes) {
  const lan = lanOf(bytes);
  const share = lan > 0 ? 1 - wanOf(bytes) / lan : 0;
  if (!cell.bar) {
    cell.number = el('span');
    cell.bar = el('i');
    cell.replaceChildren(cell.number, el('span', {class: 'bar', 'aria-hidden': 'true'}, cell.bar));
  }
  setText(cell.number, lan >= 1024 ? percent(share) : '–');  // the frames of a few bytes say nothing
  cell.bar.style.width = 100 * Math.max(0, Math.min(1, share)) + '%';
}

const portsTable = () => new Table(get('ports'), [
  {title: 'Port', text: port => portText(port.port)},
  {title: 'Flows', number: true, text: port => String(port.started)},
  {title: 'LAN', number: true, text: port => bytesText(lanOf(port.bytes))},
  {title: 'WAN', number: true, text: port => bytesText(wanOf(port.bytes))},
  {title: 'Saved', number: true, fill: (cell, port) => fillSaved(cell, port.bytes)},
], {empty: 'No flows yet.'});

function showPorts(status) {
  const ports = [...status.ports].sort((a, b) => lanOf(b.bytes) - lanOf(a.bytes)).slice(0, 15);
  tables.ports.show(ports, port => String(port.port));
}

const talkers = {by: 'client', before: new Map(), at: 0};
const talkersTable = () => new Table(get('talkers'), [
  {title: 'Name', text: each => talkers.by === 'port' ? portText(Number(each.name)) : each.name || 'no link', kind: () => 'wrap'},
  {title: 'Live flows', number: true, text: each => String(each.flows)},
  {title: 'LAN now', number: true, text: each => each.rate === undefined ? '–' : rateText(each.rate)},
  {title: 'LAN', number: true, text: each => bytesText(lanOf(each.bytes))},
  {title: 'Saved', number: true, fill: (cell, each) => fillSaved(cell, each.bytes)},
], {empty: 'No flows in the last hour.'});

async function readTalkers() {
  const by = talkers.by;
  const answer = await ask('v1/talkers?limit=10&by=' + by);
  if (by !== talkers.by) return;
  const now = performance.now() / 1000;
  const after = new Map();
  for (const each of answer.talkers) {
    const lan = lanOf(each.bytes), before = talkers.before.get(each.name);
    after.set(each.name, lan);
    if (before !== undefined && lan >= before && now > talkers.at) each.rate = 8 * (lan - before) / (now - talkers.at);
  }
  Object.assign(talkers, {before: after, at: now});
  tables.talkers.show(answer.talkers, each => each.name);
}

// ---- flows

const kFlowsShown = 200;
const flowList = {query: '', open: new Map()};

// The line of a flow and, while it is open, why it is or is not optimised.
function flowRows(row) {
  const opened = flowList.open.get(row.item.id);
  if (!opened) return [row.line];
  return [row.line, opened];
}

async function toggleFlow(id, button) {
  if (flowList.open.delete(id)) {
    button.setAttribute('aria-expanded', 'false');
  } else {
    const cell = el('td', {colspan: 9}, 'Asking…');
    flowList.open.set(id, el('tr', {class: 'detail'}, cell));
    button.setAttribute('aria-expanded', 'true');
    ask('v1/why?flow=' + id).then(why => {
      const lines = [why.sentence, 'Remedy: ' + why.remedy + '.',
        'Features: ' + Object.entries(why.features).map(([name, value]) => `${name}=${value}`).join(' ')];
      for (const lost of why.lost_files || []) lines.push(`Lost writes: ${lost.file} (${lost.cause}).`);
      for (const told of why.told_files || []) {
        lines.push(`Lost writes: ${told.file} (${told.cause}), reported ${new Date(1000 * told.at_s).toISOString()} (${told.how}).`);
      }
      cell.replaceChildren(...lines.map(line => el('p', {}, line)));
    }).catch(error => setText(cell, error.message));
  }
  tables.flows.show(flowList.flows, flow => flow.id);
}

const flowsTable = () => new Table(get('flows'), [
  {title: 'Flow', fill: (cell, flow) => {
    if (cell.firstChild) return;
    const button = el('button', {type: 'button', class: 'open', 'aria-expanded': 'false', title: 'why',
      onclick: () => toggleFlow(flow.id, button)}, String(flow.id));
    cell.append(button);
  }},
  {title: 'Client', text: flow => flow.client},
  {title: 'Server', text: flow => flow.destination},
  {title: 'Peer', text: flow => flow.peer || 'no link'},
  {title: 'Reason', text: flow => flow.reason, kind: flow => flow.reason === 'optimised' ? 'good' : 'warn'},
  {title: 'Module', text: flow => flow.module ? flow.module.name + (flow.module.state === 'running' ? '' : ' (aside)') : '–'},
  {title: 'Age', number: true, text: flow => orDash(flow.age_s, ageText)},
  {title: 'LAN', number: true, text: flow => bytesText(lanOf(flow.bytes))},
  {title: 'WAN', number: true, text: flow => bytesText(wanOf(flow.bytes))},
], {detail: flowRows, empty: 'No flow matches.'});

async function readFlows() {
  const query = flowList.query;
  const answer = await ask(`v1/flows?limit=${kFlowsShown}` + (query ? '&search=' + encodeURIComponent(query) : ''));
  if (query !== flowList.query) return;
  flowList.flows = answer.flows;
  const ids = new Set(answer.flows.map(flow => flow.id));
  for (const id of flowList.open.keys()) if (!ids.has(id)) flowList.open.delete(id);
  tables.flows.show(answer.flows, flow => flow.id);
  setText(get('flows-note'), `${answer.flows.length} of ${answer.live} live flows` +
    (answer.next === null ? '.' : '; search to see others.') + ' A flow’s number opens the reason and the remedy.');
}

// ---- memory, modules

function meter(title, bytes, limit) {
  const share = limit > 0 ? Math.min(1, bytes / limit) : 0;
  const bar = el('i');
  bar.style.width = 100 * share + '%';
  return el('div', {class: 'meter'}, el('p', {}, el('span', {}, title), el('span', {}, `${bytesText(bytes)} of ${bytesText(limit)}`)),
    el('span', {class: 'bar', 'aria-hidden': 'true'}, bar));
}

function showMemory(status) {
  const kTitles = {credit: 'Receive credit', retained: 'Sent, not acknowledged', modules: 'Protocol modules',
    ahead: 'Read ahead', dictionaries: 'Dictionaries in memory'};
  const meters = [meter('Memory in all', status.memory.bytes, status.memory.limit_bytes),
    ...status.memory.parts.map(part => meter(kTitles[part.part] || part.part, part.bytes, part.limit_bytes))];
  const disk = status.disk_dictionary;
  if (disk) meters.push(meter(`Dictionary on disk, ${disk.segments} segments`, disk.bytes, disk.limit_bytes));
  get('meters').replaceChildren(...meters);
}

const modulesTable = () => new Table(get('modules'), [
  {title: 'Module', text: module => module.module},
  {title: 'Peer', text: module => module.peer},
  {title: 'Live', number: true, text: module => String(module.live)},
  {title: 'Flows', number: true, text: module => String(module.flows)},
  {title: 'Round trips saved', number: true, text: module => String(module.counters.round_trips_saved ?? 0)},
  {title: 'Promises', number: true, text: module => String(module.counters.promises_made ?? 0)},
  {title: 'Outstanding', number: true, text: module => String(outstanding(module.counters))},
], {empty: 'No flow has a module yet.'});

const outstanding = counters => Math.max(0,
  (counters.promises_made ?? 0) - (counters.promises_kept ?? 0) - (counters.promises_failed ?? 0));

function showModules(status) {
  tables.modules.show(status.modules, module => module.peer + '\n' + module.module);
  const all = status.modules.reduce((sum, module) => sum + outstanding(module.counters), 0);
  const waiting = status.lost_writes.waiting ?? 0;
  setText(get('promises'), `Promises are writes acknowledged before the server has them: ${all} outstanding now` +
    (waiting > 0 ? `; ${waiting} files with lost writes whose clients do not know yet.` : '.'));
}

// ---- features

const kValues = {transport: 'auto, udp, tcp or off', window: 'auto, or bytes', fec: 'off, adaptive, or K:M such as 10:2',
  preset: 'B, T, A, F or A+F'};

// `until`: the file's values of those that were changed by hand.
function showInForce(preset, until) {
  const changed = Object.entries(until).map(([name, value]) => `${name} (${value} after it)`);
  setText(get('in-force'), (preset ? `This is preset ${preset}.` : 'These are the values of no preset.') +
    (changed.length ? ` Changed until the next restart: ${changed.join(', ')}.` : ''));
}

function showFeatures(features) {
  const text = JSON.stringify(features);
  const box = get('features');
  if (box.dataset.text === text) return;
  box.dataset.text = text;
  const focused = document.activeElement && document.activeElement.dataset.feature;
  const row = (name, value) => {
    const isSwitch = typeof value === 'boolean';
    const button = el('button', {type: 'button', 'data-feature': name, 'aria-label': `${name}: ${value ?? 'choose'}`,
      ...(isSwitch ? {role: 'switch', 'aria-checked': String(value)} : {}),
      onclick: () => confirmChange(name, value)}, isSwitch ? (value ? 'on' : 'off') : value === undefined ? 'choose' : String(value));
    return el('div', {}, el('span', {}, name), button);
  };
  box.replaceChildren(row('preset'), ...Object.entries(features).map(([name, value]) => row(name, value)));
  if (focused) for (const button of box.querySelectorAll('button')) if (button.dataset.feature === focused) button.focus();
}

const pending = {};

function confirmChange(name, value) {
  const isSwitch = typeof value === 'boolean';
  Object.assign(pending, {name, value: isSwitch ? !value : undefined});
  setText(get('confirm-title'), 'Change ' + name);
  setText(get('confirm-text'), isSwitch
    ? `Turn ${name} ${value ? 'off' : 'on'} here and, as far as they allow it, at the peers? Running flows switch where they can.`
    : `${name} is ${value ?? 'a set of all features'}. ${kValues[name] ? `Allowed: ${kValues[name]}.` : 'A wrong value is answered with those that are allowed.'}`);
  get('confirm-value').hidden = isSwitch;
  get('value').value = isSwitch || value === undefined ? '' : String(value);
  get('value').required = !isSwitch;
  get('token').value = '';
  showTokenField();
  setText(get('confirm-error'), '');
  get('confirm').showModal();
  if (isSwitch && sessionStorage.getItem(kTokenKey)) get('cancel').focus();
}

function showTokenField() {
  const missing = !sessionStorage.getItem(kTokenKey);
  get('confirm-token').hidden = !missing;
  get('token').required = missing;
}

async function applyChange() {
  const token = get('token').value.trim();
  if (token) sessionStorage.setItem(kTokenKey, token);
  const value = pending.value === undefined ? get('value').value.trim() : pending.value;
  try {
    const answer = await ask('v1/features', {[pending.name]: value});
    showFeatures(answer.features);
    get('confirm').close();
  } catch (error) {
    setText(get('confirm-error'), error.message);
    showTokenField();
  }
}

function startDialog() {
  get('confirm-form').addEventListener('submit', event => {
    event.preventDefault();
    applyChange();
  });
  get('cancel').addEventListener('click', () => get('confirm').close());
}

// ---- all of it

const tables = {};

async function readStatus() {
  const status = await ask('v1/status');
  document.title = `${status.verdict.ok ? '' : '⚠ '}${status.site} – Longhaul`;
  setText(get('site'), status.site);
  setText(get('about'), `version ${status.version}, up ${ageText(status.uptime_s)}`);
  showVerdict(status);
  showTiles(status);
  showLinks(status);
  showPorts(status);
  showMemory(status);
  showModules(status);
  showFeatures(status.features);
  showInForce(status.preset, status.features_until_restart);
}

const kReaders = {
  status: {read: readStatus, every: 2},
  history: {read: readHistory, every: () => chart.step === 1 ? 2 : 30},
  talkers: {read: readTalkers, every: 2},
  flows: {read: readFlows, every: 3},
};

async function refresh(name) {
  const reader = kReaders[name];
  if (reader.busy) { reader.again = true; return; }
  reader.busy = true;
  try {
    do {
      reader.again = false;
      await reader.read();
    } while (reader.again);
    reader.at = performance.now() / 1000;
    reader.failed = false;
    if (name === 'status') get('main').classList.remove('asks');
  } catch (error) {
    reader.at = performance.now() / 1000;
    if (name === 'status') showUnreachable(error);
  } finally {
    reader.busy = false;
  }
}

// From another machine nothing is answered without the token.
function askForToken(section, text) {
  const input = el('input', {type: 'password', autocomplete: 'off', required: true});
  const form = el('form', {onsubmit: event => {
    event.preventDefault();
    sessionStorage.setItem(kTokenKey, input.value.trim());
    delete section.dataset.text;
    setText(form.nextSibling, 'Asking…');
    for (const name of Object.keys(kReaders)) refresh(name);
  }}, el('label', {}, 'Control token ', input), ' ', el('button', {type: 'submit', class: 'main'}, 'Open'));
  const words = text.startsWith('wrong') ? text : 'From another machine this page needs the control token';
  section.replaceChildren(el('p', {}, el('span', {class: 'word'}, words + '.')), form, el('p', {class: 'quiet'},
    'longhaul page, typed on the proxy as root, prints the address with the token. It is kept until this tab is closed.'));
  get('main').classList.add('asks');
  input.focus();
}

function showUnreachable(error) {
  const section = get('verdict');
  const text = error.status ? error.message : 'The daemon does not answer. Is longhaul running, and is the SSH tunnel up?';
  if (section.dataset.text === text) return;
  section.dataset.text = text;
  section.className = 'verdict bad';
  if (error.status === 401) return askForToken(section, text);
  section.replaceChildren(el('p', {}, el('span', {class: 'word'}, text)), el('p', {}, 'Below is the last answer.'));
}

function tick() {
  if (document.hidden) return;
  const now = performance.now() / 1000;
  for (const [name, reader] of Object.entries(kReaders)) {
    const every = typeof reader.every === 'function' ? reader.every() : reader.every;
    if (reader.at === undefined || now - reader.at >= every) refresh(name);
  }
}

function start() {
  takeTokenFromAddress();
  Object.assign(tables, {links: linksTable(), ports: portsTable(), talkers: talkersTable(), flows: flowsTable(), modules: modulesTable()});
  startChart();
  startDialog();
  choice(get('by'), [['client', 'Clients'], ['server', 'Servers'], ['port', 'Ports'], ['peer', 'Peers']], talkers.by, by => {
    Object.assign(talkers, {by, before: new Map()});
    refresh('talkers');
  });
  const search = () => {
    flowList.query = get('query').value.trim();
    refresh('flows');
  };
  get('query').addEventListener('input', search);
  get('search').addEventListener('submit', event => {
    event.preventDefault();
    search();
  });
  window.addEventListener('hashchange', takeTokenFromAddress);
  document.addEventListener('visibilitychange', tick);
  setInterval(tick, 500);
  tick();
}

start();
