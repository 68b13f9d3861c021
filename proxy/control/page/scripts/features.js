// SPDX-License-Identifier: Apache-2.0
// The features in force, and changes of them after a confirmation.

const kValues = {transport: 'auto, udp, tcp or off', window: 'auto, or bytes', fec: 'off, adaptive, or K:M such as 10:2',
  preset: 'B, T, A, F or A+F'};

// `until`: the configuration file's values of features that a command has changed.
function showInForce(preset, features, until) {
  const word = value => value === true ? 'on' : value === false ? 'off' : String(value);
  const changed = Object.entries(until).map(([name, value]) => `${name} is ${word(features[name])} (configuration file: ${word(value)})`);
  setText(get('in-force'), (preset ? `This is preset ${preset}.` : 'These values do not correspond to a preset.') +
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
    ? `Turn ${name} ${value ? 'off' : 'on'} here and, as far as they allow it, at the peers? Live flows change where possible.`
    : `${name} is ${value ?? 'a set of values for all features'}. ${kValues[name] ? `Allowed: ${kValues[name]}.` : 'If the value is invalid, the error lists the allowed values.'}`);
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
