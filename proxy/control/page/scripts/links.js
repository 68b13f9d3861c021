// SPDX-License-Identifier: Apache-2.0
// The links with their paths.

function lossText(udp) {
  if (udp.packets_sent === 0) return '–';
  return percent((udp.packets_lost - Math.min(udp.spurious_losses, udp.packets_lost)) / udp.packets_sent);
}

const connected = link => link.state === 'up' || link.state === 'silent';
// While TCP is the carrier, UDP at most sends probes: its loss, queue and rate are not those of the link.
const carryingUdp = link => connected(link) && link.carrier === 'udp' ? link.udp : null;

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
    notes.push(link.carrier === 'udp' ? `UDP carries the link; ${rateWords(udp.rate)}; ` +
      `${udp.repairs_sent} repair packets sent, ${udp.symbols_recovered} lost packets recovered`
      : 'TCP carries the link; UDP works but is not used');
  if (udp && udp.state === 'failed' && link.state === 'up') notes.push('the peer does not answer over UDP; TCP carries the link');
  for (const path of link.paths || [])
    if (path.reason) notes.push(`path ${path.name} carries the link: ${path.reason}`);
  if (udp && udp.fallbacks > 0) notes.push(`fell back to TCP ${udp.fallbacks === 1 ? 'once' : udp.fallbacks + ' times'}`);
  const reduction = link.reduction;
  if (reduction && reduction.out.bytes.plain > 0)
    notes.push(`sent data reduced to ${percent(reduction.out.bytes.encoded / reduction.out.bytes.plain)} of its size`);
  if (reduction && reduction.in.bytes.plain > 0)
    notes.push(`received data had been reduced to ${percent(reduction.in.bytes.encoded / reduction.in.bytes.plain)}`);
  return notes.map(note => `${link.peer}: ${note}.`);
}

const kStateKinds = {up: 'good', silent: 'warn', down: 'bad', never_up: 'bad'};
const kRoles = {carries: ['carries the link', 'good'], helps: ['carries part of the bulk transfers', 'good'],
  standby: ['works, on standby', ''], none: ['does not work', 'bad']};
const pathCounts = {before: new Map(), at: 0};

// The links, each followed by its paths as rows with the same columns.
function linkRows(links) {
  const now = performance.now() / 1000;
  const after = new Map();
  const rows = links.flatMap(link => [linkRow(link), ...(link.paths || []).map(path => {
    const key = `${link.peer}\n${path.name}`;
    const before = pathCounts.before.get(key);
    after.set(key, path);
    const rate = of => before && path[of] >= before[of] && now > pathCounts.at
      ? rateText(8 * (path[of] - before[of]) / (now - pathCounts.at)) : '–';
    return pathRow(key, path, rate);
  })]);
  Object.assign(pathCounts, {before: after, at: now});
  return rows;
}

function linkRow(link) {
  const udp = carryingUdp(link);
  return {
    key: link.peer, name: link.peer, kind: kStateKinds[link.state],
    state: `${link.state.replace('_', ' ')} for ${ageText(link.state_age_s)}`,
    carrier: connected(link) ? orDash(link.carrier, carrier => carrier.toUpperCase()) : '–',
    rtt: orDash(link.rtt_ms, msText),
    loss: udp ? lossText(udp) : '–',
    queue: udp ? msText(udp.rate.queue_ms) : '–',
    sends: link.throughput ? rateText(link.throughput.out_bits) : '–',
    receives: link.throughput ? rateText(link.throughput.in_bits) : '–',
    rate: link.state === 'up' ? orDash(udp ? udp.pacing_rate_bits : link.delivery_rate_bits, rateText) : '–',
    recovered: udp ? String(udp.symbols_recovered) : '–',
    sent: bytesText(link.bytes_sent), received: bytesText(link.bytes_received), streams: String(link.streams),
  };
}

function pathRow(key, path, rate) {
  const [state, kind] = kRoles[path.role] || [path.role, ''];
  const works = path.role !== 'none';
  return {
    key, name: path.name, isPath: true, state, kind, carrier: 'UDP',
    rtt: works ? orDash(path.rtt_ms, msText) : '–',
    loss: lossText(path),
    queue: works ? msText(path.queue_ms) : '–',
    sends: rate('bytes_sent'), receives: rate('bytes_received'),
    rate: works ? orDash(path.pacing_rate_bits, rateText) : '–',
    recovered: '–', sent: bytesText(path.bytes_sent), received: bytesText(path.bytes_received), streams: '–',
  };
}

const linksTable = () => new Table(get('links'), [
  {title: 'Peer, path', text: row => row.name, kind: row => row.isPath ? 'path' : ''},
  {title: 'State', text: row => row.state, kind: row => row.kind},
  {title: 'Carrier', text: row => row.carrier},
  ...['RTT', 'Loss', 'Queue', 'Sends', 'Receives', 'Rate', 'Recovered', 'Sent', 'Received', 'Streams'].map(title =>
    ({title, number: true, text: row => row[title.toLowerCase()]})),
], {empty: 'No peer is configured.'});

function showLinks(status) {
  tables.links.show(linkRows(status.links), row => row.key);
  const notes = status.links.flatMap(linkNotes);
  const list = get('link-notes');
  if (list.dataset.text === notes.join()) return;
  list.dataset.text = notes.join();
  list.replaceChildren(...notes.map(note => el('li', {}, note)));
}
