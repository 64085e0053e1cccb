// SPDX-License-Identifier: Apache-2.0
// The heat map's painter: one colour for each rank and slice over four powers of ten. The most
// stands out most: bright on dark ground, dark on light.

// Light grows evenly along the ramp, so that it can be read without colour vision, too.
const RAMP = [
  [26, 20, 64], [56, 44, 120], [47, 86, 142], [33, 125, 138], [42, 164, 116], [122, 197, 72],
  [216, 220, 60], [253, 240, 160]
];
const DECADES = 4;

const PALEST = 0.93;  // of the ramp, on light ground: the least is not nothing

function heatColours(isLight) {
  const made = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const at = (isLight ? (1 - i / 255) * PALEST : i / 255) * (RAMP.length - 1),
          low = Math.min(RAMP.length - 2, Math.floor(at)), part = at - low;
    const [r, g, b] =
        RAMP[low].map((from, c) => Math.round(from + (RAMP[low + 1][c] - from) * part));
    made[i] = (0xff000000 | b << 16 | g << 8 | r) >>> 0;
  }
  return made;
}
const HEAT = { light: heatColours(true), dark: heatColours(false) };

// per: of a figure a second; shared: a share of the time of the row's ranks; of files, how many
// ranks are in I/O on them.
const MEASURES = {
  bytes: { planes: [3, 4], per: 1e6, text: (v) => `${digits(v)} MB/s` },
  read: { planes: [3], per: 1e6, text: (v) => `${digits(v)} MB/s` },
  written: { planes: [4], per: 1e6, text: (v) => `${digits(v)} MB/s` },
  calls: { planes: [5], per: 1, text: (v) => `${digits(v)} calls/s` },
  busy: { planes: [0, 1, 2], per: 1e7, text: (v) => `${digits(v)} %`, shared: true },
  waiting: { planes: [6], per: 1e7, text: (v) => `${digits(v)} %`, shared: true },
};
const BUSY_FILES = { planes: [0, 1, 2], per: 1e9, text: (v) => `${digits(v)} ranks` };

class HeatPainter {
  #rowsOf = new Map();

  constructor(figure, view, lanes) {
    this.figure = figure;
    this.choice = figure.querySelector('[data-measure]');
    this.order = figure.querySelector('[data-order]');
    this.rows = figure.querySelector('[data-rows]');
    this.#rowsOf.set('ranks', lanes);
    for (const one of [this.choice, this.order])
      one.addEventListener('change', () => view.redraw());
  }

  // The plot shows the rows that are chosen.
  bind(plot) {
    this.rows.addEventListener('change', async () => plot.show(await this.#tiles()));
  }

  async #tiles() {
    const which = this.rows.value;
    if (!this.#rowsOf.has(which)) {
      this.#rowsOf.set(
          which,
          which === 'files' ? await Tiles.load('heat') : this.#rowsOf.get('ranks').nodes());
    }
    const waiting = this.choice.querySelector('[value="waiting"]');
    if (waiting !== null) waiting.disabled = which === 'files';
    if (which === 'files' && this.choice.value === 'waiting') this.choice.value = 'busy';
    return this.#rowsOf.get(which);
  }

  #scale(colours) {
    const context = this.figure.querySelector('.ramp').getContext('2d'),
          image = context.createImageData(120, 10);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < pixels.length; i++) pixels[i] = colours[Math.floor(i % 120 / 120 * 256)];
    context.putImageData(image, 0, 0);
  }

  #named(key) {
    return key === 'busy' && this.rows.value === 'files' ? BUSY_FILES : MEASURES[key];
  }
  get measure() { return this.#named(this.choice.value); }

  // The numbers of the rows from top to bottom: those with most of a figure in the whole run first.
  sorted(tiles) {
    const order = tiles.rows.map((_, row) => row), by = this.order.value;
    if (by === '') return order;
    const { planes, shared } = this.#named(by === 'measure' ? this.choice.value : by);
    const whole = tiles.levels.at(-1).planes;
    const figures = order.map(
        (row) => planes.reduce((sum, p) => sum + whole[p][row], 0) /
            (shared ? tiles.ranks[row] : 1));
    return order.sort((a, b) => figures[b] - figures[a] || a - b);
  }

  // The greatest value a second of any row and slice of a level: the scale does not change while
  // the view moves.
  #greatest(level, ranks) {
    const key = this.choice.value;
    if (!level.greatest.has(key)) {
      const { planes, shared } = this.measure, from = planes.map((p) => level.planes[p]);
      let most = 0;
      for (let row = 0; row < ranks.length; row++) {
        let ofRow = 0;
        for (let i = row * level.slices; i < (row + 1) * level.slices; i++) {
          let sum = 0;
          for (const plane of from) sum += plane[i];
          if (sum > ofRow) ofRow = sum;
        }
        most = Math.max(most, shared ? ofRow / ranks[row] : ofRow);
      }
      level.greatest.set(key, most);
    }
    return level.greatest.get(key);
  }

  paint({ pixels, width, lane, order, level, columns, ranks, colour }) {
    const { planes: wanted, shared } = this.measure,
          planes = wanted.map((p) => level.planes[p]), greatest = this.#greatest(level, ranks);
    const inner = lane >= 8 ? lane - 1 : lane, empty = pixel(colour('lane'));
    const heat = (empty & 0xff) > 127 ? HEAT.light : HEAT.dark;
    this.#scale(heat);
    const line = new Uint32Array(width), perDecade = 255 / (DECADES * Math.LN10);
    order.forEach((row, at) => {
      const whole = greatest * (shared ? ranks[row] : 1);
      for (let x = 0; x < width; x++) {
        let sum = 0;
        if (columns[x] >= 0)
          for (const plane of planes) sum += plane[row * level.slices + columns[x]];
        line[x] = sum === 0 ?
            empty :
            heat[Math.min(255, Math.max(0, Math.round(255 + Math.log(sum / whole) * perDecade)))];
      }
      for (let y = 0; y < inner; y++) pixels.set(line, (at * lane + y) * width);
    });
    const rate = greatest / level.slice_s / this.measure.per;
    this.figure.querySelector('[data-low]').textContent =
        greatest ? this.measure.text(rate / 10 ** DECADES) : '';
    this.figure.querySelector('[data-high]').textContent =
        greatest ? this.measure.text(rate) : 'nothing';
  }

  tell(sums, seconds, ranks) {
    const names = Object.keys(PLANES), { planes, per, text, shared } = this.measure,
          total = planes.reduce((sum, p) => sum + sums[names[p]], 0) / (shared ? ranks : 1);
    return total ? `about ${text(total / seconds / per)}` : 'nothing';
  }
}
