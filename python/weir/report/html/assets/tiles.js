// SPDX-License-Identifier: Apache-2.0
// Numbers over time: unpacked once, added up to coarser and coarser slices, each twice as long as
// the one before.

// Planes of the packed tiles, in their order.
const PLANES = {
  read_ns: 0,
  write_ns: 1,
  other_ns: 2,
  read_bytes: 3,
  written_bytes: 4,
  calls: 5,
  waiting_ns: 6
};
const PLANE_COUNT = 7;

const weirData = JSON.parse(document.getElementById('weir-data').textContent);

async function inflate(text) {
  const binary = atob(text), packed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) packed[i] = binary.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

class Tiles {
  static #loaded = new Map();

  // The tiles of a section by its name; the same object for all who ask.
  static load(name) {
    if (!Tiles.#loaded.has(name)) {
      const text = document.getElementById(`blob-${name}-tiles`).textContent;
      Tiles.#loaded.set(name, inflate(text).then((raw) => Tiles.#of(weirData[name], raw)));
    }
    return Tiles.#loaded.get(name);
  }

  // Packed are the rows of the section, or cells of which its rows are sums.
  static #of(said, raw) {
    const count = said.lane_of?.length ?? said.rows.length;
    const cells = new Tiles(said, Tiles.#unpacked(said, raw, count));
    if (said.lane_of === undefined) return cells;
    const lanes = count === said.rows.length ?
        cells :
        cells.grouped(said.lane_of, said.rows, said.ranks, '');
    lanes.what = 'rank ';
    lanes.nodes = () => cells.grouped(said.node_of, said.nodes, said.node_ranks, 'node ');
    return lanes;
  }

  static #unpacked(said, raw, count) {
    const codes = said.bits === 8 ? new Uint8Array(raw) : new Uint16Array(raw);
    const size = said.slices * count, planes = [];
    for (let p = 0; p < PLANE_COUNT; p++) {
      const values = new Float64Array(2 ** said.bits);
      for (let k = 1; k < values.length; k++)
        values[k] = said.least[p] * Math.exp((k - 1) * said.step[p]);
      const plane = new Float32Array(size);
      for (let i = 0, from = p * size; i < size; i++) plane[i] = values[codes[from + i]];
      planes.push(plane);
    }
    return planes;
  }

  // ranks: of each row, which shares of time are divided by; what: stands before the name of a row.
  constructor({ rows, ranks, segments, slice_s, slices, length_s, what = '' }, planes) {
    Object.assign(this, { rows, ranks, segments, slice_s, length_s, what });
    this.levels = [{ slices, slice_s, planes, greatest: new Map() }];
    while (this.levels.at(-1).slices > 1) this.levels.push(this.#coarser(this.levels.at(-1)));
  }

  // Rows added up to others: into has the number of that of each.
  grouped(into, rows, ranks, what) {
    const { slices } = this.levels[0];
    const planes = this.levels[0].planes.map((fine) => {
      const sums = new Float32Array(slices * rows.length);
      into.forEach((to, from) => {
        for (let i = 0; i < slices; i++) sums[to * slices + i] += fine[from * slices + i];
      });
      return sums;
    });
    return new Tiles({ ...this, rows, ranks, slices, what }, planes);
  }

  #coarser(level) {
    const slices = Math.ceil(level.slices / 2), odd = level.slices % 2;
    const planes = level.planes.map((fine) => {
      const count = fine.length / level.slices, coarse = new Float32Array(slices * count);
      for (let row = 0; row < count; row++) {
        let from = row * level.slices, to = row * slices;
        for (let i = odd; i < slices; i++, from += 2) coarse[to++] = fine[from] + fine[from + 1];
        if (odd) coarse[to] = fine[from];
      }
      return coarse;
    });
    return { slices, slice_s: level.slice_s * 2, planes, greatest: new Map() };
  }

  // The finest level with no more than `most` slices in so many seconds.
  levelFor(seconds, most) {
    const fine = seconds / (this.slice_s * Math.max(1, most));
    return this.levels[Math.min(this.levels.length - 1, Math.max(0, Math.ceil(Math.log2(fine))))];
  }

  // Sums of a row from one time to another: by name of plane.
  sums(row, from, until) {
    const level = this.levelFor(until - from, 2048), at = row * level.slices;
    const first = Math.max(0, Math.floor(from / level.slice_s)),
          last = Math.min(level.slices, Math.ceil(until / level.slice_s));
    const made = {};
    for (const [name, p] of Object.entries(PLANES)) {
      made[name] = 0;
      for (let i = first; i < last; i++) made[name] += level.planes[p][at + i];
    }
    return made;
  }

  // The step at a time, and how far into it that is.
  place(seconds) {
    const one = this.segments.findLast((segment) => segment.from_s <= seconds) ?? this.segments[0];
    return { step: one.step, seconds: Math.max(0, seconds - one.from_s) };
  }
}

// Figures for people: three digits and the unit.
function digits(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}

function scaled(value, units) {
  for (const [limit, scale, unit] of units)
    if (Math.abs(value) < limit) return `${digits(value / scale)}\u00a0${unit}`;
  const [, scale, unit] = units.at(-1);
  return `${digits(value / scale)}\u00a0${unit}`;
}

// For axes: 1.5k, 20M.
const short = (value) =>
    (Math.abs(value) < 1000 ? digits(value) :
                              scaled(value, [
                                [1e6, 1e3, 'k'], [1e9, 1e6, 'M'], [Infinity, 1e9, 'G']
                              ]).replace('\u00a0', ''));
const inSeconds = (s) =>
    (s === 0 ? '0\u00a0s' : scaled(s, [[1e-3, 1e-6, 'us'], [1, 1e-3, 'ms'], [Infinity, 1, 's']]));
const inBytes = (b) => scaled(
    b,
    [[1e3, 1, 'B'], [1e6, 1e3, 'kB'], [1e9, 1e6, 'MB'], [1e12, 1e9, 'GB'], [Infinity, 1e12, 'TB']]);
