// SPDX-License-Identifier: Apache-2.0
// A canvas of lanes against time: sizes, names, axis and tips. What a pixel means is the painter's
// business.

const theme = () => {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
};

// What draws at once while the element is on the screen, and otherwise when it comes there.
function drawnWhenSeen(element, draw) {
  let seen = true, due = false;
  new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    if (seen && due) draw();
    due = due && !seen;
  }, { rootMargin: '200px' }).observe(element);
  return () => {
    if (seen) draw();
    else due = true;
  };
}

// '#rrggbb' as the 32 bits of a pixel on a little-endian machine.
const pixel = (colour) => {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | (value & 0xff) << 16 | (value & 0xff00) | value >> 16) >>> 0;
};

// A label in a sentence: that of a rank has a number, or one behind its program.
function titled(name) {
  return /^\d+(-\d+)?$|^[^ ]*:\d/.test(name) ? `rank ${name}` : name;
}

class LanePlot {
  #chosen = null; // lane chosen with the keyboard
  #selected = null;

  // painter: paint() fills the picture, tell() makes a tip's text; sorted(), if it has one, has the
  // rows from top to bottom.
  constructor(figure, tiles, view, painter) {
    Object.assign(this, { figure, tiles, view, painter });
    this.canvas = figure.querySelector(':scope > canvas');
    this.tip = figure.querySelector('.tip');
    this.#resize();
    new ResizeObserver(() => { this.#resize(); this.draw(); }).observe(this.canvas);
    view.listen(drawnWhenSeen(figure, () => this.draw()));
    bindTools(figure, view);
    steer(this.canvas, view, (x) => this.#secondsAt(x), (from, until) => this.#select(from, until));
    this.canvas.addEventListener('pointermove', (event) => this.#point(event));
    this.canvas.addEventListener('pointerleave', () => { this.tip.textContent = ''; });
    this.canvas.addEventListener('keydown', (event) => this.#key(event));
    this.canvas.addEventListener('blur', () => {
      this.#chosen = null;
      this.tip.textContent = '';
      this.draw();
    });
  }

  // Other rows.
  show(tiles) {
    this.tiles = tiles;
    this.#chosen = null;
    this.tip.textContent = '';
    this.#resize();
    this.draw();
  }

  #resize() {
    const rows = this.tiles.rows.length, width = this.canvas.clientWidth || 600;
    const longest = this.tiles.rows.reduce((most, name) => Math.max(most, name.length), 4);
    this.lane = Math.max(1, Math.min(44, Math.floor(420 / rows)));
    this.left = Math.min(Math.max(90, width * 0.3), 20 + 7.5 * longest);
    this.top = 20;
    this.width = Math.max(50, width - this.left - 6);
    this.height = rows * this.lane;
    this.ratio = Math.min(3, window.devicePixelRatio || 1);
    const height = this.top + this.height + 26;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
  }

  #secondsAt(clientX) {
    const x = clientX - this.canvas.getBoundingClientRect().left - this.left;
    return this.view.from + Math.min(1, Math.max(0, x / this.width)) * this.view.span;
  }

  #select(from, until) {
    this.#selected = from === until ? null : [Math.min(from, until), Math.max(from, until)];
    this.draw();
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect(), y = event.clientY - box.top - this.top,
          x = event.clientX - box.left;
    const row = Math.floor(y / this.lane);
    if (row < 0 || row >= this.tiles.rows.length || x < this.left) {
      this.tip.textContent = '';
      return;
    }
    const level = this.tiles.levelFor(this.view.span, this.width),
          at = this.#secondsAt(event.clientX);
    const slice = Math.floor(at / level.slice_s) * level.slice_s;
    this.#tell(this.order[row], slice, slice + level.slice_s, x, event.clientY - box.top);
  }

  #tell(row, from, until, x, y) {
    const { step, seconds } = this.tiles.place(Math.max(0, from));
    const row_name = this.tiles.rows[row];
    const name = this.tiles.what === 'rank ' ? titled(row_name) : `${this.tiles.what}${row_name}`;
    const where = `${name}, ${step}, ${digits(seconds)} s + ${inSeconds(until - from)}`;
    this.tip.textContent = `${where}\n${
        this.painter.tell(this.tiles.sums(row, from, until), until - from, this.tiles.ranks[row])}`;
    const limit = this.figure.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(limit, x + 14))}px`;
    this.tip.style.top = `${this.canvas.offsetTop + y + 16}px`;
  }

  #key(event) {
    const way = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (way === undefined) return;
    event.preventDefault();
    const rows = this.tiles.rows.length;
    this.#chosen = this.#chosen === null ? (way > 0 ? 0 : rows - 1) :
                                           Math.min(rows - 1, Math.max(0, this.#chosen + way));
    this.draw();
    this.#tell(
        this.order[this.#chosen], this.view.from, this.view.until, this.left,
        this.top + (this.#chosen + 1) * this.lane);
  }

  draw() {
    const colour = theme(), context = this.canvas.getContext('2d'), ratio = this.ratio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const width = Math.round(this.width * ratio), lane = Math.max(1, Math.floor(this.lane * ratio));
    this.order = this.painter.sorted?.(this.tiles) ?? this.tiles.rows.map((_, row) => row);
    const image = context.createImageData(width, Math.round(this.height * ratio));
    const pixels = new Uint32Array(image.data.buffer);
    const level = this.tiles.levelFor(this.view.span, width), columns = this.#columns(level, width);
    this.painter.paint(
        {pixels, width, lane, order: this.order, level, columns, ranks: this.tiles.ranks, colour});
    context.putImageData(image, Math.round(this.left * ratio), Math.round(this.top * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#names(context, colour);
    this.#axis(context, colour);
    this.#marks(context, colour);
  }

  // The slice that each column of pixels shows; -1 beyond the end.
  #columns(level, width) {
    const made = new Int32Array(width), each = this.view.span / width;
    for (let x = 0; x < width; x++) {
      const slice = Math.floor((this.view.from + (x + 0.5) * each) / level.slice_s);
      made[x] = slice < level.slices ? slice : -1;
    }
    return made;
  }

  #names(context, colour) {
    context.fillStyle = colour('muted');
    context.font = '12px system-ui, sans-serif';
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    const every = Math.max(1, Math.ceil(14 / this.lane));
    const widthOf = (text) => context.measureText(text).width;
    for (let at = 0; at < this.order.length; at += every) {
      const name = this.tiles.rows[this.order[at]];
      const text = at === 0 && this.tiles.what === 'rank ' ? titled(name) : name;
      const y = this.top + (at + 0.5) * this.lane;
      context.fillText(fittedEnd(text, this.left - 10, widthOf), this.left - 6, y);
    }
  }

  #x(seconds) { return this.left + (seconds - this.view.from) / this.view.span * this.width; }

  #axis(context, colour) {
    const x = (seconds) => this.#x(seconds), bottom = this.top + this.height;
    drawTimes(context, colour, this.view, { left: this.left, width: this.width, bottom, x });
    drawSteps(
        context, colour, this.tiles,
        { left: this.left, width: this.width, top: this.top, bottom, x });
  }

  #marks(context, colour) {
    if (this.#chosen !== null) {
      context.strokeStyle = colour('link');
      context.strokeRect(this.left, this.top + this.#chosen * this.lane, this.width, this.lane);
    }
    if (this.#selected !== null) {
      const [from, until] = this.#selected.map((s) => this.#x(s));
      context.globalAlpha = 0.25;
      context.fillStyle = colour('link');
      context.fillRect(from, this.top, until - from, this.height);
      context.globalAlpha = 1;
    }
  }
}

// The axis of time of a frame: its place, and the x of a time.
function drawTimes(context, colour, view, { left, width, bottom, x }) {
  const end = left + width;
  context.strokeStyle = colour('line');
  context.fillStyle = colour('muted');
  context.textBaseline = 'top';
  context.textAlign = 'center';
  const { step, made } = ticks(view.from, view.until, width / 90);
  for (const at of made) {
    line(context, x(at), bottom, x(at), bottom + 5);
    const text = tickText(at, step), half = context.measureText(text).width / 2;
    if (x(at) + half < end - 10) context.fillText(text, x(at), bottom + 8);
  }
  context.textAlign = 'right';
  context.fillText('s', end, bottom + 8);
}

// Where steps begin, and their names as far as there is room.
function drawSteps(context, colour, tiles, { left, width, top, bottom, x }) {
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  tiles.segments.forEach((segment, i) => {
    const until = tiles.segments[i + 1]?.from_s ?? tiles.length_s;
    const begin = Math.max(left, x(segment.from_s)), end = Math.min(left + width, x(until));
    if (end <= left || begin >= left + width) return;
    context.strokeStyle = colour('muted');
    if (i > 0 && x(segment.from_s) >= left) line(context, begin, 2, begin, bottom);
    context.fillStyle = colour('ink');
    context.fillText(
        fitted(segment.step, end - begin - 6, (text) => context.measureText(text).width), begin + 4,
        top / 2);
  });
}

// The text, or its beginning where there is no room for all of it; nothing where the beginning
// would say nothing.
function fitted(text, room, widthOf) {
  if (widthOf(text) <= room) return text;
  let most = text.length - 1;
  while (most >= 4 && widthOf(`${text.slice(0, most)}\u2026`) > room) most--;
  return most >= 4 ? `${text.slice(0, most)}\u2026` : '';
}

// The text, or its end: what distinguishes paths.
function fittedEnd(text, room, widthOf) {
  if (widthOf(text) <= room) return text;
  let first = 1;
  while (first < text.length && widthOf(`\u2026${text.slice(first)}`) > room) first++;
  return `\u2026${text.slice(first)}`;
}

function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(Math.round(x1) + 0.5, y1);
  context.lineTo(Math.round(x2) + 0.5, y2);
  context.stroke();
}
