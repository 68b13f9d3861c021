// SPDX-License-Identifier: Apache-2.0
// Elements of the page: tables that keep their rows, choices. Data from the network is inserted as text, never as markup.

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
// has a title, a text or an element for each item, and optionally a class for its cells.
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
