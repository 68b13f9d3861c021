// SPDX-License-Identifier: Apache-2.0
// Starts everything, and updates at intervals.

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
  showInForce(status.preset, status.features, status.features_until_restart);
  showExports(status.exports);
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

// Requests from another machine are refused without the token.
function askForToken(section, text) {
  const input = el('input', {type: 'password', autocomplete: 'off', required: true});
  const form = el('form', {onsubmit: event => {
    event.preventDefault();
    sessionStorage.setItem(kTokenKey, input.value.trim());
    delete section.dataset.text;
    setText(form.nextSibling, 'Loading…');
    for (const name of Object.keys(kReaders)) refresh(name);
  }}, el('label', {}, 'Control token ', input), ' ', el('button', {type: 'submit', class: 'main'}, 'Open'));
  const words = text.startsWith('wrong') ? text : 'From another machine this page needs the control token';
  section.replaceChildren(el('p', {}, el('span', {class: 'word'}, words + '.')), form, el('p', {class: 'quiet'},
    'To get the address with the token, run longhaul page as root on the proxy. The token is kept until this tab is closed.'));
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
  section.replaceChildren(el('p', {}, el('span', {class: 'word'}, text)), el('p', {}, 'The data below are from the last answer.'));
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
  Object.assign(tables, {links: linksTable(), ports: portsTable(), talkers: talkersTable(), flows: flowsTable(), modules: modulesTable(),
    exports: exportsTable()});
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
