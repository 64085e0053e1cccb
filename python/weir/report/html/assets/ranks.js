// SPDX-License-Identifier: Apache-2.0
// The wall time of all ranks as bars: by node, each node's ranks on request, sorted by any part.
// The page has a few of them as they stand; this draws the others when the reader chooses them.

class RankBars {
  constructor(figure, { words, nodes, ranks }) {
    Object.assign(this, { figure, words, nodes });
    this.ranks = ranks.map(([rank, node, ...us]) => ({ rank, node, us, whole: sumOf(us) }));
    this.table = figure.querySelector('table');
    this.which = figure.querySelector('[data-which]');
    if (this.ranks.length < 2) return;
    this.still = {
      html: this.table.innerHTML,
      which: this.which.textContent,
      few: this.table.classList.contains('few')
    };
    const views = this.nodes.length > 1 ?
        [['ranks', 'ranks by node'], ['nodes', 'mean rank of each node']] :
        [['ranks', 'each rank']];
    if (this.ranks.length > this.table.querySelectorAll('td.bar').length)
      views.unshift(['still', this.still.which]);
    this.view = select('Show', views);
    this.order = select(
        'Sort by',
        [['', 'number'], ...words.map(([, word], part) => [part, word]), ['whole', 'whole time']]);
    const box = document.createElement('span');
    box.className = 'tools';
    box.append(this.view, this.order);
    this.which.replaceWith(box);
    for (const one of [this.view, this.order]) one.addEventListener('change', () => this.draw());
  }

  draw() {
    if (this.view.value === 'still' && this.order.value !== '') this.view.value = 'ranks';
    if (this.view.value === 'still') {
      this.table.innerHTML = this.still.html;
      this.table.classList.toggle('few', this.still.few);
      return;
    }
    const means = this.#means(), rows = this.view.value === 'nodes' ? means : this.ranks;
    const longest = Math.max(...rows.map((one) => one.whole)) || 1;
    const sorted = (all) => (this.order.value === '' ? all : [...all].sort(
        (a, b) => this.#figure(b) - this.#figure(a)));
    const bodies = this.view.value === 'nodes' || this.nodes.length === 1 ?
        [[null, sorted(rows)]] :
        sorted(means).map(
            (mean) => [mean.label, sorted(this.ranks.filter((one) => one.node === mean.node))]);
    this.table.classList.toggle('few', rows.length <= 6);
    this.table.replaceChildren(...bodies.map(([node, its]) => this.#body(node, its, longest)));
  }

  #figure({ us, whole }) { return this.order.value === 'whole' ? whole : us[this.order.value]; }

  // The mean rank of each node, as a row.
  #means() {
    return this.nodes.map((name, node) => {
      const its = this.ranks.filter((one) => one.node === node);
      const us = this.words.map((_, part) => sumOf(its.map((one) => one.us[part])) / its.length);
      return {
        label: `${name}, ${its.length} rank${its.length === 1 ? '' : 's'}`,
        node,
        us,
        whole: sumOf(us)
      };
    });
  }

  #body(node, rows, longest) {
    const body = document.createElement('tbody');
    if (node !== null) {
      const head = document.createElement('th');
      Object.assign(head, { colSpan: 3, scope: 'rowgroup', textContent: node });
      body.insertRow().append(head);
    }
    for (const one of rows) body.append(this.#row(one, longest));
    return body;
  }

  #row(one, longest) {
    const row = document.createElement('tr'), head = document.createElement('th');
    Object.assign(head, { scope: 'row', textContent: one.label ?? titled(`${one.rank}`) });
    row.append(head);
    const bar = row.insertCell(), figure = row.insertCell();
    bar.className = 'bar';
    figure.className = 'figure';
    const texts = [];
    let lost = 0;
    this.words.forEach(([kind, word], part) => {
      const us = one.us[part];
      if (us === 0) return;
      const piece = document.createElement('i');
      piece.className = kind;
      piece.style.width = `${(100 * us / longest).toFixed(2)}%`;
      bar.append(piece);
      texts.push(`${word} ${inSeconds(us / 1e6)} (${shareText(us, one.whole)})`);
      if (kind === 'active' || kind === 'critical') lost += us;
    });
    row.title = texts.join('; ');
    figure.textContent = shareText(lost, one.whole);
    return row;
  }
}

const sumOf = (values) => values.reduce((sum, one) => sum + one, 0);

// Per cent as the tables have it: what is not nothing never looks like nothing.
function shareText(part, whole) {
  if (!whole) return '-';
  const value = 100 * part / whole;
  const text = value === 0 ? '0' :
      value < 0.1          ? '<0.1' :
      value < 10           ? value.toFixed(1) :
                             value.toFixed(0);
  return `${text}\u00a0%`;
}

function select(label, choices) {
  const made = document.createElement('select');
  made.ariaLabel = label;
  for (const [value, text] of choices) {
    const one = document.createElement('option');
    Object.assign(one, { value, textContent: label === 'Sort by' ? `by ${text}` : text });
    made.append(one);
  }
  return made;
}
