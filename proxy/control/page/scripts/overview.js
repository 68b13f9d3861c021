// SPDX-License-Identifier: Apache-2.0
// Verdict, tiles, ports, top talkers, memory, modules, exports.

function showVerdict(status) {
  const {ok, problems, saved_bytes: saved, saved_share: share} = status.verdict;
  const serious = problems.some(problem => problem.serious);
  const section = get('verdict');
  section.className = 'verdict ' + (ok ? 'good' : serious ? 'bad' : 'warn');
  const savings = share === null ? 'No traffic yet.'
    : saved >= 0 ? `Saved ${bytesText(saved)} (${percent(share)}) of WAN traffic since the start.`
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
    tile('Flows over links', String(optimised)),
    tile('Interception', status.intercept.state.replace('_', ' ')));
}

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
  setText(cell.number, lan >= 1024 ? percent(share) : '–');  // not meaningful for a few bytes
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
  const objects = status.disk_objects;
  if (objects) meters.push(meter(`Responses on disk, ${objects.objects} stored` + (objects.answers ? '' : ', the disk is late'),
    objects.bytes, objects.limit_bytes));
  get('meters').replaceChildren(...meters);
}

const modulesTable = () => new Table(get('modules'), [
  {title: 'Module', text: module => module.module},
  {title: 'Peer', text: module => module.peer},
  {title: 'Live', number: true, text: module => String(module.live)},
  {title: 'Flows', number: true, text: module => String(module.flows)},
  {title: 'Round trips saved', number: true, text: module => String(module.counters.round_trips_saved ?? 0)},
  {title: 'Cache hits', number: true, text: module => String(module.counters.cache_hits ?? 0)},
  {title: 'Revalidated', number: true, text: module => String(module.counters.cache_validations ?? 0)},
  {title: 'From the cache', number: true, text: module => bytesText(module.counters.cache_bytes ?? 0)},
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
    (waiting > 0 ? `; ${waiting} files with lost writes whose clients have not been notified yet.` : '.'));
}

const exportsTable = () => new Table(get('exports'), [
  {title: 'To', text: row => row.name},
  {title: 'Sent', number: true, text: row => row.sent},
  {title: 'Failed', number: true, text: row => row.failed, kind: row => row.bad ? 'bad' : ''},
]);

// Only configured exports. Counts since the start of the daemon.
function showExports({ipfix, otlp, syslog}) {
  const rows = [];
  if (otlp) rows.push({name: 'OpenTelemetry collector', sent: `${otlp.sent} requests`, bad: otlp.failed + otlp.rejected_points > 0,
    failed: `${otlp.failed} requests, ${otlp.rejected_points} data points rejected`});
  if (ipfix) rows.push({name: 'IPFIX collector', sent: `${ipfix.messages} messages, ${ipfix.records} records`,
    bad: ipfix.failures + ipfix.dropped_records > 0, failed: `${ipfix.failures} messages or look-ups, ${ipfix.dropped_records} records dropped`});
  if (syslog) rows.push({name: 'syslog', sent: `${syslog.sent} lines`, bad: syslog.lost > 0, failed: `${syslog.lost} lines lost`});
  get('exports-section').hidden = rows.length === 0;
  tables.exports.show(rows, row => row.name);
}
