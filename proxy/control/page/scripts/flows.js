// SPDX-License-Identifier: Apache-2.0
// The list of flows, with a search and details.

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
    const cell = el('td', {colspan: 9}, 'Loading…');
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
  {title: 'Module', text: flow => flow.module ? flow.module.name + (flow.module.state === 'running' ? '' : ' (stepped aside)') : '–'},
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
    (answer.next === null ? '.' : '; search to see others.') + ' Select a flow’s number to see the reason and the remedy.');
}
