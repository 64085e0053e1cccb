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

const MEASURES = {
  bytes: { planes: [3, 4], per: 1e6, text: (v) => `${digits(v)} MB/s` },
  read: { planes: [3], per: 1e6, text: (v) => `${digits(v)} MB/s` },
  written: { planes: [4], per: 1e6, text: (v) => `${digits(v)} MB/s` },
  calls: { planes: [5], per: 1, text: (v) => `${digits(v)} calls/s` },
  busy: { planes: [0, 1, 2], per: 1e7, text: (v) => `${digits(v)} %` },
  waiting: { planes: [6], per: 1e7, text: (v) => `${digits(v)} %` },
};

class HeatPainter {
  constructor(figure, view) {
    this.figure = figure;
    this.choice = figure.querySelector('[data-measure]');
    this.choice.addEventListener('change', () => view.redraw());
  }

  #scale(colours) {
    const context = this.figure.querySelector('.ramp').getContext('2d'),
          image = context.createImageData(120, 10);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < pixels.length; i++) pixels[i] = colours[Math.floor(i % 120 / 120 * 256)];
    context.putImageData(image, 0, 0);
  }

  get measure() { return MEASURES[this.choice.value]; }

  // The greatest value a second of any lane and slice of a level: the scale does not change while
  // the view moves.
  #greatest(level) {
    const key = this.choice.value;
    if (!level.greatest.has(key)) {
      const planes = this.measure.planes.map((p) => level.planes[p]);
      let most = 0;
      for (let i = 0; i < planes[0].length; i++) {
        let sum = 0;
        for (const plane of planes) sum += plane[i];
        if (sum > most) most = sum;
      }
      level.greatest.set(key, most);
    }
    return level.greatest.get(key);
  }

  paint({ pixels, width, lane, rows, level, columns, colour }) {
    const planes = this.measure.planes.map((p) => level.planes[p]),
          greatest = this.#greatest(level);
    const inner = lane >= 8 ? lane - 1 : lane, empty = pixel(colour('lane'));
    const heat = (empty & 0xff) > 127 ? HEAT.light : HEAT.dark;
    this.#scale(heat);
    const line = new Uint32Array(width), perDecade = 255 / (DECADES * Math.LN10);
    for (let row = 0; row < rows; row++) {
      for (let x = 0; x < width; x++) {
        let sum = 0;
        if (columns[x] >= 0)
          for (const plane of planes) sum += plane[row * level.slices + columns[x]];
        line[x] = sum === 0 ?
            empty :
            heat[Math.max(0, Math.round(255 + Math.log(sum / greatest) * perDecade))];
      }
      for (let y = 0; y < inner; y++) pixels.set(line, (row * lane + y) * width);
    }
    const rate = greatest / level.slice_s / this.measure.per;
    this.figure.querySelector('[data-low]').textContent =
        greatest ? this.measure.text(rate / 10 ** DECADES) : '';
    this.figure.querySelector('[data-high]').textContent =
        greatest ? this.measure.text(rate) : 'nothing';
  }

  tell(sums, seconds, ranks) {
    const names = Object.keys(PLANES),
          total = this.measure.planes.reduce((sum, p) => sum + sums[names[p]], 0);
    return total ? `about ${this.measure.text(total / seconds / this.measure.per)}` : 'nothing';
  }
}
