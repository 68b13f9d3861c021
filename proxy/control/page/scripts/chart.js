// SPDX-License-Identifier: Apache-2.0
// LAN and WAN rates over time, drawn as SVG (decision 0024).

const kRanges = [[1, '10 minutes'], [60, 'Day'], [3600, '30 days']];
const chart = {step: 1, from: 0, slots: [], readAt: 0};

async function readHistory() {
  const step = chart.step;
  const answer = await ask('v1/history?step=' + step);
  if (step !== chart.step) return;  // the range was changed meanwhile
  chart.from = answer.from_s;
  // The newest interval has not ended: its bytes would look like a drop.
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
    (lan > 0 ? `, ${percent(1 - wan / lan)} saved` : '') + `; at most ${most} live flows.`;
  setText(get('chart-words'), words);
}

// Marks the selected interval, which the pointer moves, or arrow keys while the chart has the focus.
function showCursor() {
  const box = get('chart');
  for (const old of box.querySelectorAll('.cursor, output')) old.remove();
  const at = chart.cursor;
  if (at === undefined || at < 0 || at >= chart.slots.length) return;
  const x = chart.left + chart.width * at / Math.max(chart.slots.length - 1, 1);
  box.firstChild.append(svg('line', {class: 'cursor', x1: x, x2: x, y1: 8, y2: box.clientHeight - 22}));
  const slot = chart.slots[at];
  const note = el('output', {}, timeText(at, true) + ': ' +
    (slot ? `LAN ${rateText(lanRate(slot))}, WAN ${rateText(wanRate(slot))}, ${slot[4]} flows` : 'the daemon was not running'));
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
