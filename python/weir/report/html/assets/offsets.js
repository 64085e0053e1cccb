// SPDX-License-Identifier: Apache-2.0
// Offset over time of one file: a panel for reads and one for writes, a box for each mark, coloured
// by rank. Time is that of all plots; the bytes shown are the plot's own.

const PANEL = 190; // pixels, of reads and of writes
const SEVERAL = 0xffffffff;
const LEAST_BYTES = 64; // of a plot

// The marks of one file, unpacked (weir.report.offsets.page packs them).
class Offsets {
  static async load(at) {
    const text = document.getElementById(`blob-offsets-${at}`).textContent;
    return new Offsets(weirData.offsets, weirData.offsets.plots[at], await inflate(text));
  }

  constructor({ ranks, unit_ns: unit }, said, raw) {
    const bytes = new Uint8Array(raw), n = said.marks;
    let from = 0;
    // bytes lie plane by plane: the first bytes of all, then the second ones, ...
    const column = (width) => {
      const made = new Float64Array(n);
      for (let b = 0; b < width; b++, from += n)
        for (let i = 0; i < n; i++) made[i] += bytes[from + i] * 256 ** b;
      return made;
    };
    Object.assign(this, { said, ranks, length: n });
    const step = column(4), length = column(4);
    this.offset = column(8);
    this.bytes = column(8);
    this.count = column(4);
    this.rank = column(4);
    this.way = column(1);
    this.begin_s = new Float64Array(n);
    this.end_s = new Float64Array(n);
    for (let i = 0, at = 0; i < n; i++) {
      at = (at + step[i]) % 2 ** 32;
      this.begin_s[i] = at * unit / 1e9;
      this.end_s[i] = (at + length[i]) * unit / 1e9;
    }
  }
}

// Colours of ranks: hues from red to violet, as light as text needs to stand out.
function rankColour(place, ranks) {
  const isDark = (parseInt(theme()('paper').slice(1, 3), 16) || 0) < 128;
  const hue = ranks < 2 ? 215 : 300 * place / (ranks - 1);
  return `hsl(${hue.toFixed(0)} ${isDark ? '75% 62%' : '80% 42%'})`;
}

class OffsetPlot {
  #selected = null;

  constructor(figure, marks, tiles, view) {
    Object.assign(this, { figure, marks, tiles, view });
    this.canvas = figure.querySelector(':scope > canvas');
    this.tip = figure.querySelector('.tip');
    this.ways = marks.said.ways;
    this.#all();
    this.#resize();
    this.#legend();
    new ResizeObserver(() => { this.#resize(); this.draw(); }).observe(this.canvas);
    view.listen(drawnWhenSeen(figure, () => this.draw()));
    bindTools(figure, view);
    for (const button of figure.querySelectorAll('[data-bytes]'))
      button.addEventListener('click', () => this.#move(button.dataset.bytes));
    this.#bind();
  }

  #all() { [this.low, this.high] = [this.marks.said.from, this.marks.said.until]; }

  #bind() {
    let y = 0, to = 0;
    this.canvas.addEventListener('pointerdown', (event) => { y = to = this.#bytesAt(event); });
    this.canvas.addEventListener('pointermove', (event) => {
      to = this.#bytesAt(event);
      this.#tell(event);
    });
    this.canvas.addEventListener('pointerleave', () => { this.tip.textContent = ''; });
    // before the drag's end moves the view
    this.canvas.addEventListener('pointerup', () => {
      const part = Math.abs(to - y) / (this.high - this.low);
      if (this.#selected !== null && part > 0.05) this.#show(Math.min(y, to), Math.max(y, to));
    });
    this.canvas.addEventListener('dblclick', () => this.#all());
    steer(this.canvas, this.view, (x) => this.#secondsAt(x), (from, until) => {
      this.#selected = from === until ? null : [from, until, y, to];
      this.draw();
    });
    this.canvas.addEventListener('keydown', (event) => {
      const way = { PageUp: 'in', PageDown: 'out', ArrowUp: 'up', ArrowDown: 'down' }[event.key];
      if (event.key === '0' || event.key === 'Home') this.#all();
      if (way === undefined) return;
      event.preventDefault();
      this.#move(way);
    });
    this.figure.querySelector('[data-do="all"]').addEventListener('click', () => this.#all());
  }

  #move(way) {
    const span = this.high - this.low, middle = (this.high + this.low) / 2;
    const [shift, factor] =
        { in: [0, 0.5], out: [0, 2], up: [0.25, 1], down: [-0.25, 1] }[way];
    const half = span * factor / 2, at = middle + shift * span;
    this.#show(at - half, at + half);
  }

  // Within the bytes that the file's marks have.
  #show(low, high) {
    const { from, until } = this.marks.said, whole = until - from;
    const span = Math.min(whole, Math.max(Math.min(LEAST_BYTES, whole), high - low));
    this.low = Math.min(Math.max(from, (low + high - span) / 2), until - span);
    this.high = this.low + span;
    this.draw();
  }

  #resize() {
    const width = this.canvas.clientWidth || 600;
    this.left = 72;
    this.top = 20;
    this.gap = 22;
    this.width = Math.max(50, width - this.left - 6);
    this.bottom = this.top + this.ways.length * (PANEL + this.gap) - this.gap;
    this.ratio = Math.min(3, window.devicePixelRatio || 1);
    this.canvas.style.height = `${this.bottom + 26}px`;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round((this.bottom + 26) * this.ratio);
  }

  #legend() {
    const { ranks } = this.marks, section = this.figure.parentElement;
    section.querySelector('[data-first]').textContent = ranks[0] ?? '';
    section.querySelector('[data-last]').textContent =
        ranks.length > 1 ? ranks[ranks.length - 1] : '';
    const context = section.querySelector('[data-ramp]').getContext('2d');
    for (let x = 0; x < 120; x++) {
      context.fillStyle = rankColour(Math.floor(x / 120 * ranks.length), ranks.length);
      context.fillRect(x, 0, 1, 10);
    }
  }

  #x(seconds) { return this.left + (seconds - this.view.from) / this.view.span * this.width; }
  #panelTop(panel) { return this.top + panel * (PANEL + this.gap); }
  #y(panel, bytes) {
    return this.#panelTop(panel) +
        PANEL * (1 - (bytes - this.low) / Math.max(1, this.high - this.low));
  }
  #secondsAt(clientX) {
    const x = clientX - this.canvas.getBoundingClientRect().left - this.left;
    return this.view.from + Math.min(1, Math.max(0, x / this.width)) * this.view.span;
  }
  #panelAt(event) {
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    const panel = Math.floor((y - this.top) / (PANEL + this.gap));
    return Math.min(this.ways.length - 1, Math.max(0, panel));
  }
  #bytesAt(event) {
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    const part = 1 - (y - this.#panelTop(this.#panelAt(event))) / PANEL;
    return this.low + Math.min(1, Math.max(0, part)) * (this.high - this.low);
  }

  draw() {
    const colour = theme(), context = this.canvas.getContext('2d'), ratio = this.ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.font = '12px system-ui, sans-serif';
    this.ways.forEach((way, panel) => this.#panel(context, colour, way, panel));
    const frame = {
      left: this.left, width: this.width, top: this.top, bottom: this.bottom,
      x: (s) => this.#x(s)
    };
    drawTimes(context, colour, this.view, frame);
    drawSteps(context, colour, this.tiles, frame);
    if (this.#selected === null) return;
    const [from, until, low, high] = this.#selected;
    context.globalAlpha = 0.25;
    context.fillStyle = colour('link');
    this.ways.forEach((_, panel) => {
      const y = this.#y(panel, Math.max(low, high));
      context.fillRect(
          this.#x(Math.min(from, until)), y, Math.abs(this.#x(until) - this.#x(from)),
          this.#y(panel, Math.min(low, high)) - y);
    });
    context.globalAlpha = 1;
  }

  #panel(context, colour, way, panel) {
    const top = this.#panelTop(panel);
    context.fillStyle = colour('lane');
    context.fillRect(this.left, top, this.width, PANEL);
    context.fillStyle = colour('muted');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    const { made } = ticks(this.low, this.high, PANEL / 40);
    for (const bytes of made) {
      const y = this.#y(panel, bytes);
      if (y > top + 6) context.fillText(bytes ? inBytes(bytes) : '0', this.left - 6, y);
    }
    context.save();
    context.beginPath();
    context.rect(this.left, top, this.width, PANEL);
    context.clip();
    this.#boxes(context, colour, way, panel);
    context.restore();
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillStyle = colour('ink');
    context.fillText(way ? 'written' : 'read', this.left + this.width - 4, top - 9);
  }

  #boxes(context, colour, way, panel) {
    const { marks, view } = this, colours = new Map();
    const inkOf = (rank) => {
      if (!colours.has(rank))
        colours.set(
            rank, rank === SEVERAL ? colour('other') : rankColour(rank, marks.ranks.length));
      return colours.get(rank);
    };
    for (let i = 0; i < marks.length; i++) {
      if (marks.way[i] !== way || marks.end_s[i] < view.from || marks.begin_s[i] > view.until)
        continue;
      const x = this.#x(marks.begin_s[i]), y = this.#y(panel, marks.offset[i] + marks.bytes[i]);
      const width = Math.max(1.2, this.#x(marks.end_s[i]) - x),
            height = Math.max(1.5, this.#y(panel, marks.offset[i]) - y);
      context.fillStyle = inkOf(marks.rank[i]);
      context.fillRect(x, y, width, height);
    }
  }

  // The mark that is drawn last of those under the pointer.
  #tell(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left,
          y = event.clientY - box.top, panel = this.#panelAt(event), { marks } = this;
    let found = -1;
    for (let i = 0; i < marks.length; i++) {
      if (marks.way[i] !== this.ways[panel]) continue;
      if (x > this.#x(marks.begin_s[i]) - 2 && x < this.#x(marks.end_s[i]) + 2 &&
          y < this.#y(panel, marks.offset[i]) + 2 &&
          y > this.#y(panel, marks.offset[i] + marks.bytes[i]) - 2)
        found = i;
    }
    this.tip.textContent = found < 0 ? '' : this.#words(found);
    if (found < 0) return;
    const limit = this.figure.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(limit, x + 14))}px`;
    this.tip.style.top = `${this.canvas.offsetTop + y + 16}px`;
  }

  #words(i) {
    const { marks } = this, what = marks.way[i] ? 'written' : 'read';
    const rank = marks.rank[i] === SEVERAL ? 'several ranks' : titled(`${marks.ranks[marks.rank[i]]}`);
    const { step, seconds } = this.tiles.place(marks.begin_s[i]);
    const many = marks.count[i] > 1 ? `${marks.count[i].toLocaleString('en')} requests: ` : '';
    return `${many}${rank}, ${step}, ${seconds.toFixed(6)} s + ${
        inSeconds(marks.end_s[i] - marks.begin_s[i])}\n${what}: bytes ${
        marks.offset[i].toLocaleString('en')} to ${
        (marks.offset[i] + marks.bytes[i]).toLocaleString('en')}`;
  }
}
